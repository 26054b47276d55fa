/** A static page: one row for each case, one column for each gateway. */
import { AREAS, areaOf, type Case, isWeirsOwn } from './case.ts';
import { areas, figureText, type Report, scoresOf, scoreText, threadUrl } from './report.ts';

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .5rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: Canvas; }
td.passed { color: #16803c; } td.failed { color: #c22; } td.none { color: #888; }
.small { color: #888; font-size: .85em; } tr.area th { padding-top: 1.4rem; }
code { font-size: .9em; }`;

export function page(reports: readonly Report[], cases: readonly Case[]): string {
  const heads = reports.map(
    (one) =>
      `<th>${escaped(one.gateway)}<br><span class="small">${escaped(one.version)}<br>${one.date.slice(0, 10)}</span></th>`,
  );
  const body = areas().map((area) => {
    const scores = reports.map((one) => scoresOf(one.results).find((score) => score.area === area));
    const cells = scores.map((score) => `<th>${score === undefined ? '–' : scoreText(score)}</th>`);
    const rows = cases.filter((one) => areaOf(one) === area).map((one) => row(one, reports));
    return `<tr class="area"><th>${escaped(AREAS[area])}</th>${cells.join('')}</tr>\n${rows.join('\n')}`;
  });
  const commands = reports.map(
    (one) =>
      `<li>${escaped(one.gateway)}: <code>${escaped(one.command)}</code>, Node ${escaped(one.node)}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>How exact is a gateway?</title>
<style>${STYLE}</style>
<h1>How exact is a gateway?</h1>
<p>Each row is a case: what a provider sends, and what a client suffers if the gateway gets it wrong. – cannot be measured from outside, or
is not offered. † only Weir's contract asks for it.</p>
<ul>
${commands.join('\n')}
</ul>
<table>
<thead><tr><th>case</th>${heads.join('')}</tr></thead>
<tbody>
${body.join('\n')}
</tbody>
</table>
</html>
`;
}

function row(one: Case, reports: readonly Report[]): string {
  const cells = reports.map(({ results }) => {
    const result = results.find(({ id }) => id === one.id);
    if (result === undefined) return '<td class="none">–</td>';
    const why = result.reason ?? result.faults.map((fault) => `${fault.kind}: ${fault.text}`).join('\n');
    const kinds = [...new Set(result.faults.map((fault) => fault.kind))].join(', ');
    const text = figureText(result) + (kinds === '' ? '' : `: ${kinds}`);
    return `<td class="${result.verdict}"${why === '' ? '' : ` title="${escaped(why)}"`}>${escaped(text)}</td>`;
  });
  const thread =
    one.thread === null ? '' : ` <a class="small" href="${threadUrl(one.thread)}">${escaped(one.thread)}</a>`;
  const mark = isWeirsOwn(one) ? ' †' : '';
  return `<tr><td>${escaped(one.title)}${mark}<br><span class="small">${escaped(one.suffers)}</span> <code class="small">${one.id}</code>${thread}</td>${cells.join('')}</tr>`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
