/** Preact without the features that the page doesn't use: class components, hydration, portals, contexts, raw HTML (D1, D2). */
import { readFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Plugin } from 'esbuild';

const PREACT = join(import.meta.dirname, '..', '..', 'node_modules', 'preact');

/** Texts of Preact's sources (11.2.0) and their replacements. Any white space matches any other. */
const REPLACEMENTS: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  'src/component.js': [
    ['&& !vnode.props._parentDom ? getDomSibling', '? getDomSibling'],
    ['&& vnode._component && !vnode.props._parentDom', '&& vnode._component'],
    ['component._globalContext,', ''],
    ['oldVNode._flags & MODE_HYDRATE ? [oldDom] : NULL,', ''],
    ['oldVNode._flags & MODE_HYDRATE,', ''],
    ['if (options.vnode) options.vnode(newVNode);', ''],
    ["if (typeof update == 'function') {", 'if (false) {'],
    ['if (callback) { this._stateCallbacks.push(callback); }', ''],
    ['if (update) { assign(s, update); } else { return; }', 'assign(s, update);'],
    ['|| prevDebounce != options.debounceRendering', ''],
    ['prevDebounce = options.debounceRendering;', ''],
    ['(prevDebounce || queueMicrotask)(process); } }', 'queueMicrotask(process); } }'],
  ],
  'src/create-element.js': [['if (!original && options.vnode) options.vnode(vnode);', '']],
  'src/render.js': [
    ['if (options._root) options._root(vnode, parentDom);', ''],
    ['if (parentDom.nodeType == 9) {', 'if (false) {'],
    ['let isHydrating = vnode && vnode._flags & MODE_HYDRATE;', ''],
    ['let oldVNode = isHydrating ? NULL : parentDom._children;', ''],
    ['oldVNode || EMPTY_OBJ, EMPTY_OBJ,', 'EMPTY_OBJ,'],
    ['oldVNode ? NULL : parentDom.firstChild ? slice.call(parentDom.childNodes) : NULL,', ''],
    ['oldVNode ? oldVNode._dom : parentDom.firstChild,', 'NULL,'],
    ['isHydrating,', ''],
  ],
  'src/diff/catch-error.js': [['for (; (vnode = vnode._parent); ) {', 'for (; false; ) {']],
  'src/diff/index.js': [
    ['globalContext,', ''],
    ['excessDomChildren,', ''],
    ['isHydrating,', ''],
    ['oldVNode._flags & MODE_SUSPENDED &&', 'false &&'],
    ['const isClassComponent = (tmp = newType.prototype) && tmp.render;', 'const isClassComponent = false;'],
    ['tmp = newType.contextType;', ''],
    ['const provider = tmp && globalContext[tmp._id];', ''],
    [
      'const componentContext = tmp ? provider ? provider.props.value : tmp._defaultValue : globalContext;',
      '',
    ],
    ['new BaseComponent( newProps, componentContext )', 'new BaseComponent(newProps)'],
    ['new newType(newProps, componentContext)', 'NULL'],
    ['if (provider) provider.sub(c);', ''],
    ['c._globalContext = globalContext;', ''],
    ['if (c.componentWillUpdate) {', 'if (false) {'],
    ['c.context = componentContext;', ''],
    [
      'c.shouldComponentUpdate( newProps, c._nextState, componentContext )',
      'c.shouldComponentUpdate(newProps)',
    ],
    ['c.componentWillReceiveProps(newProps, componentContext)', 'NULL'],
    ['c.render(c.props, (c.state = c._nextState), c.context)', 'c.render(c.props, (c.state = c._nextState))'],
    ['return this.constructor(props, context);', 'return this.constructor(props);'],
    ['if (c.getChildContext) {', 'if (false) {'],
    ['if (newProps._parentDom) {', 'if (false) {'],
    ['if (resumed) resumed.some(removeNode);', ''],
    ['EMPTY_ARR.push.apply(c._renderCallbacks, c._stateCallbacks); c._stateCallbacks = [];', ''],
    ['c._stateCallbacks = [];', ''],
    ['newVNode._flags &= RESET_MODE;', ''],
    ['if (isHydrating || excessDomChildren) {', 'if (false) {'],
    ['if (!(e && e.then)) markAsForce(newVNode);', ''],
    ["else if (nodeType == 'math') namespace = MATH_NAMESPACE;", ''],
    ['if (excessDomChildren) { for', 'if (false) { for'],
    ['const doc = parentDom.ownerDocument || document;', 'const doc = document;'],
    ['nodeType, newProps.is ? newProps : parentDom )', 'nodeType)'],
    ['if (isHydrating) {', 'if (false) {'],
    ['excessDomChildren = NULL; }', '}'],
    ['&& (!isHydrating || dom.data != newProps)', ''],
    ["parentDom = (nodeType == 'template' && dom.content) || dom;", 'parentDom = dom;'],
    [
      "excessDomChildren = nodeType == 'textarea' && newProps.defaultValue != NULL ? NULL : excessDomChildren && slice.call(parentDom.childNodes);",
      '',
    ],
    ['if (!isHydrating && excessDomChildren) {', 'if (false) {'],
    ["if (i == 'dangerouslySetInnerHTML') { oldHtml = value; } else if (", 'if ('],
    ["&& !(i == 'value' && 'defaultValue' in newProps)", ''],
    ["&& !(i == 'checked' && 'defaultChecked' in newProps)", ''],
    ["else if (i == 'dangerouslySetInnerHTML') { newHtml = value; }", ''],
    ["(!isHydrating || typeof value == 'function') &&", ''],
    ['if (newHtml) {', 'if (false) {'],
    ["if (oldHtml) dom.textContent = '';", ''],
    [
      "if ( nodeType == 'foreignObject' || (namespace == MATH_NAMESPACE && MATHML_TOKEN_ELEMENTS.test(nodeType)) ) {",
      'if (false) {',
    ],
    ['excessDomChildren ? excessDomChildren[0] :', ''],
    ['if (excessDomChildren) excessDomChildren.some(removeNode);', ''],
    ["if (!isHydrating || nodeType == 'textarea') {", '{'],
    ["if (nodeType == 'progress' && inputValue == NULL) {", 'if (false) {'],
    ["(inputValue !== dom[i] || (nodeType == 'progress' && !inputValue))", 'inputValue !== dom[i]'],
    ["if (typeof ref == 'function') {", 'if (false) {'],
    ['if (r.componentWillUnmount) {', 'if (false) {'],
    ['= r._globalContext = NULL', '= NULL'],
    ['? skipRemove && !vnode.props._parentDom', '? skipRemove'],
    ['if ( !skipRemove && (r = vnode._component) && (r = r._excess) &&', 'if (false &&'],
  ],
  'src/diff/props.js': [
    ["if (name == 'style') {", 'if (false) {'],
    ["useCapture = name != (name = name.replace(CAPTURE_REGEX, '$1'));", ''],
    ['proxy, useCapture', 'proxy'],
    ["name = name.replace(/xlink(H|:h)/, 'h').replace(/sName$/, 's');", ''],
    ["name != 'download' && name != 'rowSpan' && name != 'colSpan' &&", ''],
    ["name != 'popover' &&", ''],
    ["name == 'popover' && value == true ? '' : value", 'value'],
    ['options.event ? options.event(e) : e', 'e'],
  ],
  'src/diff/children.js': [
    ['globalContext,', ''],
    ['excessDomChildren,', ''],
    ['isHydrating,', ''],
    ['|| oldVNode._flags & REF_DETACHED', ''],
    ['|| childVNode.constructor === String', ''],
    ['if (parentVNode.props._parentDom) return oldDom;', ''],
    ['while (next && next.nodeType == 8) next = next.nextSibling;', ''],
    ["&& oldDom.nodeType == 8 && !oldDom.data.startsWith('$s')", '&& false'],
    ['if (!isMounting && parentDom.moveBefore && dom.parentNode) {', 'if (false) {'],
  ],
  'hooks/src/index.js': [
    ['if (oldBeforeDiff) oldBeforeDiff(vnode);', ''],
    ['if (oldRoot) oldRoot(vnode, parentDom);', ''],
    ['options._root = (vnode, parentDom) => {', 'const unused = (vnode, parentDom) => {'],
    ['if (oldBeforeRender) oldBeforeRender(vnode);', ''],
    ['if (oldAfterDiff) oldAfterDiff(vnode);', ''],
    ['if (oldCommit) oldCommit(vnode, commitQueue);', ''],
    ['if (oldBeforeUnmount) oldBeforeUnmount(vnode);', ''],
    ['if (options._hook) {', 'if (false) {'],
    ['!options._skipEffects &&', ''],
    ['const prevScu = currentComponent.shouldComponentUpdate;', 'const prevScu = false;'],
    ['if (errorParent === undefined) {', 'if (false) {'],
    ["let HAS_RAF = typeof requestAnimationFrame == 'function';", 'const HAS_RAF = true;'],
    ['|| prevRaf != options.requestAnimationFrame', ''],
    ['prevRaf = options.requestAnimationFrame;', ''],
    ['(prevRaf || afterNextFrame)(', 'afterNextFrame('],
  ],
};

/** Fields of Preact's objects. Preact's own builds shorten them too. */
export const PREACT_FIELDS = '_[a-z]\\w*|__hooks';

/** Bundles Preact from its sources with these replacements. A text that is not found fails the build: the version has changed. */
export const reducedPreact: Plugin = {
  name: 'cut-preact',
  setup: (build) => {
    build.onResolve({ filter: /^preact(\/hooks)?$/ }, ({ path }) => ({
      path: join(PREACT, path.endsWith('hooks') ? 'hooks' : '', 'src', 'index.js'),
      sideEffects: path.endsWith('hooks'),
    }));
    build.onLoad({ filter: /[\\/]node_modules[\\/]preact[\\/].*\.js$/ }, async ({ path }) => {
      const file = path.slice(PREACT.length + 1).replaceAll(sep, '/');
      const text = await readFile(path, 'utf8');
      const plain = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
      const contents = (REPLACEMENTS[file] ?? []).reduce((before, [from, to]) => {
        const after = before.replaceAll(patternOf(from), () => to);
        if (after === before) throw new Error(`Preact's ${file} has no "${from}"`);
        return after;
      }, plain);
      return { contents, loader: 'js' };
    });
  },
};

function patternOf(text: string): RegExp {
  const words = text.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(words.join('\\s*'), 'g');
}
