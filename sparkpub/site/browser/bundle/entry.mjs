import {extend} from 'vega-util';
import {transforms} from 'vega-dataflow';
import {expressionInterpreter} from 'vega-interpreter';
import {parse} from 'vega-parser';
import * as data from 'vega-transforms';
import * as views from 'vega-view-transforms';
import * as encode from 'vega-encode';
import {View} from 'vega-view';

extend(transforms, data, views, encode);

/** A view of a Vega specification in `place`, not yet run. Expressions are interpreted, never compiled. */
export const makeView = async (specification, place, loader) =>
  new View(parse(specification, null, {ast: true}), {
    loader,
    expr: expressionInterpreter,
    renderer: 'svg',
    container: place,
    hover: true,
    tooltip: () => {},
  });
