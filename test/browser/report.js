// SPDX-License-Identifier: MIT
// Opens a report's page in headless Chromium and shows that it renders without a console error or a request, that zoom and
// sort work, that text is readable at 1280 and at 390 pixels, and that it prints.
//
// usage: node report.js PAGE.html SCREENSHOT-FOLDER
'use strict';
const { chromium } = require('playwright-core');
const path = require('path');

let failed = 0;
function check(condition, what) {
  if (!condition) { failed++; console.log('FAIL: ' + what); }
}

async function open(browser, width, page) {
  const tab = await browser.newPage({ viewport: { width, height: 900 } });
  tab.on('console', message => check(message.type() !== 'error' && message.type() !== 'warning', 'console: ' + message.text()));
  tab.on('pageerror', error => check(false, 'script: ' + error.message));
  tab.on('request', request => check(/^(file|data):/.test(request.url()), 'a request to ' + request.url()));
  await tab.goto('file://' + page);
  return tab;
}

async function readable(tab, width) {
  const found = await tab.evaluate(() => {
    const small = [], wide = document.documentElement.scrollWidth;
    for (const element of document.querySelectorAll('p,td,th,li,h1,h2,button,.names div,.axis span')) {
      const size = parseFloat(getComputedStyle(element).fontSize);
      if (element.textContent.trim() && size < 11) small.push(element.tagName + ' ' + size);
    }
    // Contrast of body text against its background (WCAG 2).
    const luminance = colour => {
      const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = getComputedStyle(document.body), soft = getComputedStyle(document.querySelector('.caption'));
    const back = luminance(style.backgroundColor);
    const ratio = front => { const f = luminance(front); return (Math.max(f, back) + 0.05) / (Math.min(f, back) + 0.05); };
    return { small, wide, ratios: [ratio(style.color), ratio(soft.color)] };
  });
  check(found.small.length === 0, `${width} pixels: text below 11 pixels: ${found.small.slice(0, 3)}`);
  const cut = await tab.evaluate(() => [...document.querySelectorAll('.axis span')].filter(s => s.offsetLeft + s.offsetWidth > s.parentElement.clientWidth + 1
    || s.offsetHeight > 1.6 * parseFloat(getComputedStyle(s).fontSize)).map(s => s.textContent));
  check(cut.length === 0, `${width} pixels: times cut off or broken on the axis: ${cut}`);
  check(found.wide <= width, `${width} pixels: the page is ${found.wide} wide`);
  check(found.ratios.every(ratio => ratio >= 4.5), `${width} pixels: contrast ${found.ratios}`);
}

async function zoom(tab) {
  const view = async () => (await tab.getAttribute('#t', 'viewBox')).split(' ').map(Number);
  const whole = await view(), words = await tab.textContent('#said');
  await tab.click('#in');
  const closer = await view();
  check(closer[2] === whole[2] / 2 && closer[0] === whole[2] / 4, 'zoom in halves the view around its middle');
  check(await tab.textContent('#said') !== words, 'the range is told');
  const box = await (await tab.$('#t')).boundingBox();
  await tab.evaluate(() => document.getElementById('t').scrollIntoView({ block: 'center' }));
  const seen = await (await tab.$('#t')).boundingBox();
  await tab.mouse.move(seen.x + seen.width / 2, seen.y + seen.height / 2);
  await tab.mouse.wheel(0, -100);
  await tab.waitForFunction(width => +document.getElementById('t').getAttribute('viewBox').split(' ')[2] < width, closer[2]);
  const before = await view();
  await tab.mouse.down();
  await tab.mouse.move(seen.x + seen.width / 4, seen.y + seen.height / 2);
  await tab.mouse.up();
  check((await view())[0] > before[0], 'dragging to the left moves to later times');
  await tab.click('#all');
  check((await view())[2] === whole[2], 'all shows all');
  check(box.width > 0 && await tab.locator('.axis span').count() >= 2, 'the axis has ticks');
  await tab.evaluate(() => { const rects = [...document.querySelectorAll('#t rect')];
    rects.sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0].id = 'widest'; });
  await tab.hover('#widest');
  check((await tab.textContent('#tip')).length > 5 && await tab.isVisible('#tip'), 'pointing at something says what it is');
}

async function sort(tab) {
  const table = tab.locator('section', { has: tab.locator('h2', { hasText: /^Calls$/ }) });
  const column = async index => table.locator('tbody tr').evaluateAll((rows, i) => rows.map(row => +row.cells[i].getAttribute('data-v')), index);
  await table.locator('th button', { hasText: 'count' }).click();
  const down = await column(4);
  check(down.length > 3 && down.every((value, i) => !i || down[i - 1] >= value), 'sorted downwards by count');
  await table.locator('th button', { hasText: 'count' }).click();
  const up = await column(4);
  check(up.every((value, i) => !i || up[i - 1] <= value), 'a second click sorts upwards');
  check(await table.locator('th[aria-sort=ascending]').count() === 1, 'the head says how it is sorted');
  await table.locator('th button', { hasText: 'name' }).click();
  const names = await table.locator('tbody tr').evaluateAll(rows => rows.map(row => row.cells[0].textContent));
  check(names.every((name, i) => !i || names[i - 1].localeCompare(name) <= 0), 'names sort as text');
}

(async () => {
  const [page, folder] = process.argv.slice(2).map(name => path.resolve(name));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });
  for (const width of [1280, 390]) {
    const tab = await open(browser, width, page);
    await readable(tab, width);
    const wide = await tab.evaluate(() => [...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > s.clientWidth + 1,
      getComputedStyle(s.nextElementSibling).display !== 'none' && s.nextElementSibling.classList.contains('hint')]));
    check(wide.every(([is, says]) => is === says), `${width} pixels: tables that scroll say so, and only they: ${wide.length}`);
    check(width > 390 || wide.some(([is]) => is), '390 pixels: some table scrolls');
    await tab.screenshot({ path: `${folder}/report-${width}.png`, fullPage: true });
  }
  const tab = await open(browser, 1280, page);
  if (await tab.locator('#t').count()) await zoom(tab);
  if (await tab.locator('h2', { hasText: /^Calls$/ }).count()) await sort(tab);
  await tab.emulateMedia({ colorScheme: 'dark' });
  await readable(tab, 1280);
  await tab.emulateMedia({ media: 'print', colorScheme: 'light' });
  check(!await tab.locator('.tools').count() || !await tab.isVisible('.tools'), 'buttons are not printed');
  const pdf = await tab.pdf({ path: `${folder}/report.pdf`, format: 'A4' });
  check(pdf.length > 10000, 'it prints');
  await browser.close();
  console.log(failed ? 'not ok' : 'ok - browser');
  process.exit(failed ? 1 : 0);
})().catch(error => { console.log('FAIL: ' + error.message); process.exit(1); });
