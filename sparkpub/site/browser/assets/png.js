// A figure as PNG: its SVG file, drawn twice as large. The build makes PNG files for posts and previews alone.
const SCALE = 2;

/** Draw the SVG at an address and hand it to the reader as a file of the same name. */
export async function save(address) {
  const text = await (await fetch(address)).text();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth * SCALE;
  canvas.height = image.naturalHeight * SCALE;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = address.split('/').pop().replace(/\.svg$/, '.png');
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
