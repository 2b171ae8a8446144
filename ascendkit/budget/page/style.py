"""Look and behaviour of the page: colours for light and dark, and sorting of the table."""

CSS = """
:root{--ink:#1c2330;--soft:#5d6879;--line:#d9dee7;--paper:#fff;--card:#f5f7fa;--accent:#2563eb;
--cube:#2563eb;--vector:#0d9488;--hbm:#d97706;--l2:#9333ea;--scaleup:#db2777;--scaleout:#be123c;
--launch:#94a3b8;--less:#16a34a;--other:#64748b}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf2;--soft:#9aa6b8;--line:#323b4a;--paper:#11161f;
--card:#1a212d;--accent:#7aa2ff;--cube:#7aa2ff;--vector:#2dd4bf;--hbm:#fbbf24;--l2:#c084fc;
--scaleup:#f472b6;--scaleout:#fb7185;--launch:#7b8798;--less:#4ade80;--other:#94a3b8}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:20px 16px 48px}h1{margin:0;font-size:26px}
h2{font-size:18px;margin:30px 0 8px}h3{margin:0;font-size:15px}
.sub{color:var(--soft);margin:4px 0 16px}
.cards{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(230px,1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.big{font-size:28px;font-weight:650;margin:2px 0 6px}dl{display:grid;grid-template-columns:auto 1fr;
gap:1px 10px;margin:0;font-size:13px}dt{color:var(--soft)}dd{margin:0;text-align:right}
.no{background:#fde68a;color:#713f12;border-radius:6px;padding:1px 7px;
font-size:12px;font-weight:500}
.tabs{display:flex;flex-wrap:wrap;gap:8px;margin:18px 0 0}.tab{border:1px solid var(--line);
background:var(--card);color:var(--ink);border-radius:8px;
padding:7px 14px;font:inherit;cursor:pointer}
.tab.on{background:var(--accent);color:var(--paper);border-color:var(--accent)}
svg{display:block;width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}
svg .soft{fill:var(--soft)}svg .grid{stroke:var(--line);stroke-width:1}svg .axis{stroke:var(--soft)}
.wide{overflow-x:auto;-webkit-overflow-scrolling:touch}.wide svg{min-width:640px}
table{border-collapse:collapse;font-size:13px;width:100%}th,td{padding:4px 8px;text-align:right;
white-space:nowrap;border-bottom:1px solid var(--line)}th{position:sticky;top:0;
background:var(--paper);
cursor:pointer;user-select:none}th:first-child,td:first-child,.sums td{text-align:left}
th[data-dir="1"]:after{content:" \\25b2"}th[data-dir="-1"]:after{content:" \\25bc"}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--soft);margin:4px 0 8px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
ul{padding-left:20px}li{margin:2px 0}.marks{list-style:none;padding:0;display:flex;flex-wrap:wrap;
gap:4px 18px;color:var(--soft)}.marks b{color:var(--ink)}
footer{margin-top:28px;color:var(--soft);font-size:12px;overflow-wrap:anywhere}
code{font-family:ui-monospace,Menlo,Consolas,monospace}.muted{color:var(--soft);font-size:13px}
"""

SCRIPT = """
document.querySelectorAll('.tab').forEach(function(b){b.onclick=function(){
document.querySelectorAll('.tab').forEach(function(x){x.classList.toggle('on',x===b)});
document.querySelectorAll('.panel').forEach(function(p){p.hidden=p.dataset.index!==b.dataset.panel})}});
document.querySelectorAll('table.sort').forEach(function(t){
t.querySelectorAll('th').forEach(function(h,i){h.onclick=function(){
var d=h.dataset.dir==='-1'?1:-1;t.querySelectorAll('th').forEach(function(x){delete x.dataset.dir});
h.dataset.dir=d;var rows=[].slice.call(t.tBodies[0].rows);rows.sort(function(a,b){
var x=a.cells[i].dataset.v,y=b.cells[i].dataset.v;
if(x!==undefined&&y!==undefined)return d*(x-y);
return d*a.cells[i].textContent.localeCompare(b.cells[i].textContent)});
rows.forEach(function(r){t.tBodies[0].appendChild(r)})}})});
"""
