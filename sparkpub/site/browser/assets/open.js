// On the short page of a run: go on to the whole view of it.
location.replace(document.querySelector('a[data-sp-open]').href + location.hash);
