import {extend} from 'vega-util';
import {changeset, transforms} from 'vega-dataflow';
import * as data from 'vega-transforms';
import * as views from 'vega-view-transforms';
import * as encode from 'vega-encode';

extend(transforms, data, views, encode);

export {changeset};
export {View} from 'vega-view';
export {parse} from 'vega-parser';
export {expressionInterpreter} from 'vega-interpreter';
