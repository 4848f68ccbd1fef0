// Charts that answer: replaces a chart's drawing by a live view of the same size.
export {};
