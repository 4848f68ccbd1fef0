// Buttons that copy the command behind them.
export function start() {
  for (const button of document.querySelectorAll('[data-sp-copy]')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.closest('.sp-command').querySelector('pre').textContent.trim());
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
  }
}
