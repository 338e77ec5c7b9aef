// The page: opens chats and handles its buttons.
//
// Query parameters: ?session=ID opens a chat, ?db=NAME uses another database, ?lane=NAME a separate lane of the
// stand-in.

import { open } from 'rethread';
import { Chat } from './chat.js';
import { Conversation } from './conversation.js';
import { el, perFrame } from './dom.js';
import { Notices } from './notices.js';
import { Sessions, StoreStatus } from './sessions.js';
import { restoreChat } from './session-files.js';
import { Settings, settingsDialog } from './settings.js';
import { ChatDetailsDialog } from './chat-details-dialog.js';
import { receiptLines } from './erasure-receipt.js';
import { Inspector } from './inspector.js';

const SUGGESTIONS = [
  { text: 'How is the weather in Oslo, and what time is it there?' },
  { text: 'I fly to Tokyo tomorrow. What should I expect?' },
  { text: 'Please send 20 euros to Ada.', label: 'Send 20 euros to Ada (asked first)' },
  { text: 'Ask Ada whether Friday suits her.', label: 'Ask Ada whether Friday suits her (she answers later)' },
  { text: 'What does the web say about Rome?', label: 'What does a hostile web page say about Rome?', hostile: true },
];

const $ = (selector) => document.querySelector(selector);
const address = new URL(location.href);
const name = address.searchParams.get('db') || 'rethread-demo';
const settings = new Settings({ store: name, lane: address.searchParams.get('lane') });

const conversation = new Conversation();
const notices = new Notices();
const question = $('#question');
let db;
let sessions;
let store;
let detailsDialog;
let inspector;
/** The chat that is shown. */
let chat = null;
/** The id of the chat that is shown, or will be when it is open. */
let wanted = null;
/** The open chats by id: the one that is shown, and those that `leave` keeps. */
const chats = new Map();
/** The promises of the chats that are opening, by id. */
const openings = new Map();

/** Updates the buttons at once, so that nothing is sent twice. */
function updateControls() {
  $('#send').hidden = chat.running;
  $('#stop').hidden = !chat.running;
}

const paintSoon = perFrame(() => {
  if (!chat) return;
  const { running, view } = chat;
  const follows = conversation.isAtEnd();
  conversation.paint(chat, ACTIONS);
  notices.paint(chat);
  $('#welcome').hidden = running || view.getSnapshot().messages.length > 0;
  $('#title').textContent = chat.title || 'New chat';
  document.title = chat.title ? `${chat.title} · rethread demo` : 'rethread demo';
  $('#model-name').textContent = `${settings.model} · ${settings.format}`;
  detailsDialog.paint(chat);
  inspector.paint();
  if (follows) conversation.toEnd();
});

function paint() {
  if (!chat) return;
  updateControls();
  paintSoon();
}

/** Opens a chat, once however often it is called meanwhile. */
function openChat(id) {
  if (!openings.has(id))
    openings.set(
      id,
      Chat.open(db, id, settings, () => onChatChange(id))
        .then((opened) => {
          chats.set(id, opened);
          return opened;
        })
        .finally(() => openings.delete(id)),
    );
  return openings.get(id);
}

function onChatChange(id) {
  const changed = chats.get(id);
  if (changed && changed !== chat) leave(changed);
  else paint();
}

async function show(id) {
  wanted = id;
  const next = chats.get(id) ?? (await openChat(id));
  if (id !== wanted) return leave(next); // another one was chosen meanwhile
  const last = chat;
  chat = next;
  if (last && last !== next) {
    notices.show(null);
    leave(last);
  }
  sessions.current = id;
  address.searchParams.set('session', id);
  history.replaceState(null, '', address);
  conversation.clear();
  conversation.paint(chat, ACTIONS);
  conversation.toEnd();
  paint();
}

/** Releases a chat that is not shown, unless a run of it is active in this tab or its answer could not be stored. */
function leave(old) {
  if (old !== chat && old.id !== wanted && !old.running && !old.failure?.retry) release(old);
}

function release(old) {
  if (chats.get(old.id) === old) chats.delete(old.id);
  old.close();
}

/** What a person does with messages and calls of the open chat. */
const ACTIONS = {
  decide: (runId, call, approves, reason) => chat?.decide(runId, call, approves, reason),
  answer: (call, text) => chat?.answer(call, text),
  edit: (id, text) => ask(text, id),
  regenerate,
  showVersion: (id) => chat?.showVersion(id),
  erase,
};

async function newChat() {
  await show(crypto.randomUUID());
  question.focus();
}

/** `replace`: the id of the question that this one is an edit of. */
async function ask(text, replace, askedChat = chat) {
  notices.show(null);
  conversation.toEnd();
  const status = await askedChat.send(text, replace);
  if (askedChat !== chat) return;
  if (status === 'not_started' && !question.value) {
    question.value = text;
    fitHeight();
  }
  if (replace) noteIfStopped(status, () => ask(text, replace, askedChat));
  if (isFocusFree()) question.focus();
  paint();
}

/** True if the focus may move to the question: nobody writes elsewhere. */
function isFocusFree() {
  const { activeElement } = document;
  return activeElement === document.body || $('#composer').contains(activeElement);
}

async function regenerate(id, askedChat = chat) {
  notices.show(null);
  const status = await askedChat.regenerate(id);
  if (askedChat === chat) noteIfStopped(status, () => regenerate(id, askedChat));
  paint();
}

/** A run in the place of another one leaves nothing when it is stopped: the version before is shown again. */
function noteIfStopped(status, again) {
  if (status === 'cancelled') notices.show('Stopped. The chat is as it was before.', [], ['Ask again', again]);
}

async function isConfirmed(text) {
  const dialog = $('#confirm');
  $('#confirm-text').textContent = text;
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === 'yes';
}

/** Erases a message of the open chat, and shows the receipt. */
async function erase({ id, parts }) {
  const askedChat = chat;
  const calls = parts.filter(({ type }) => type === 'tool').length;
  const withCalls = calls ? `, ${calls === 1 ? 'its call' : `its ${calls} calls`} and what came back,` : '';
  if (!(await isConfirmed(`Erase this message${withCalls} from this browser, in all versions of the chat?`))) return;
  const receipt = await askedChat.erase(id);
  if (receipt && askedChat === chat) notices.show(...receiptLines(receipt));
  refreshList();
  paint();
}

async function archive(id, title, archived) {
  try {
    await (await db.session(id)).update({ archived });
    $('#announcer').textContent = archived ? `"${title}" is in the archive.` : `"${title}" is out of the archive.`;
  } catch (error) {
    notices.show(`The chat could not be ${archived ? 'archived' : 'moved'}: ${error.message}`);
    paint();
  }
  refreshList();
}

async function remove(id, title) {
  if (!(await isConfirmed(`Delete "${title}" with all its messages?`))) return;
  await chats.get(id)?.stop();
  try {
    await db.deleteSession(id);
  } catch (error) {
    notices.show(`The chat could not be deleted: ${error.message}`);
    paint();
  }
}

/** Stores a chat that was read from a file, and shows it. */
async function restore(file) {
  const { session, isCopy } = await restoreChat(db, file, () => crypto.randomUUID());
  await show(session.id);
  const shared = isCopy && session.owner.kind !== 'session' ? ' Both continue what the service keeps.' : '';
  notices.show(
    isCopy
      ? `This chat is here already, so the file was restored as a copy.${shared}`
      : `"${session.title || 'Untitled'}" was restored.`,
  );
  refreshList();
  paint();
}

/** Stores a body as a new chat, and shows it. */
async function openBody(body, dialect) {
  const id = crypto.randomUUID();
  const session = await db.session(id, { title: 'Repaired chat' });
  await session.append(body, dialect);
  await show(id);
  refreshList();
}

/** Called when a session changed, in this or another tab. */
async function onChange({ session, deleted }) {
  refreshList();
  if (!deleted && session === chat?.id && !chat.running) chat.readPendingRuns();
  if (deleted) {
    const deletedChat = chats.get(session);
    if (deletedChat) release(deletedChat);
    if (chat?.id === session) {
      chat = null;
      await newChat();
    }
  }
}

const refreshList = perFrame(async () => {
  try {
    await Promise.all([sessions.refresh(), store.refresh()]);
  } catch (error) {
    notices.show(`The list of chats could not be read: ${error.message}`);
    paint();
  }
});

/** Adapts the height of the field to its text. */
function fitHeight() {
  question.style.height = 'auto';
  question.style.height = `${Math.min(question.scrollHeight, 200)}px`;
}

function drawer(open) {
  if (!open) inspector.uncover();
  $('main').inert = open;
  document.body.classList.toggle('drawer', open);
  $('#shade').hidden = !open;
  $('#drawer-open').setAttribute('aria-expanded', String(open));
  (open ? $('#new-chat') : question).focus({ preventScroll: true });
}

function addListeners() {
  const dialog = settingsDialog(settings, paint);
  $('#settings-open').addEventListener('click', () => dialog.open());
  $('#new-chat').addEventListener('click', () => {
    drawer(false);
    newChat();
  });
  $('#drawer-open').addEventListener('click', () => drawer(true));
  $('#drawer-close').addEventListener('click', () => drawer(false));
  $('#shade').addEventListener('click', () => drawer(false));
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && document.body.classList.contains('drawer')) drawer(false);
  });
  $('#composer').addEventListener('submit', (event) => {
    event.preventDefault();
    const text = question.value.trim();
    if (!text || chat.running) return;
    question.value = '';
    fitHeight();
    ask(text);
  });
  question.addEventListener('input', () => {
    fitHeight();
    inspector.paint();
  });
  question.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $('#composer').requestSubmit();
  });
  $('#stop').addEventListener('click', () => chat.stop());
  for (const { text, label, hostile } of SUGGESTIONS) {
    const button = el('button.suggestion', { type: 'button' }, label ?? text);
    button.addEventListener('click', () => {
      if (hostile) settings.offerHostile();
      ask(text);
    });
    $('#suggestions').append(el('li', {}, button));
  }
}

async function start() {
  db = await open({ name });
  sessions = new Sessions(db, {
    open(id) {
      drawer(false);
      if (id === chat?.id) return;
      show(id).catch((error) => {
        notices.show(`The chat could not be opened: ${error.message}`);
        paint();
      });
    },
    remove,
    archive,
  });
  store = new StoreStatus(db);
  detailsDialog = new ChatDetailsDialog({
    chat: () => chat,
    restore,
    formatKeepsConversations: () => settings.keepsConversations,
  });
  inspector = new Inspector({
    chat: () => chat,
    question: () => question.value.trim(),
    settings,
    store: name,
    status: () => db.status(),
    openBody,
  });
  addListeners();
  db.subscribe(onChange);
  setInterval(() => {
    if (!document.hidden && $('#sessions .badge:not([hidden])')) refreshList();
  }, 2000);
  await show(address.searchParams.get('session') || crypto.randomUUID());
  refreshList();
  question.focus({ preventScroll: true });
  document.body.dataset.ready = 'true';
}

start().catch((error) => {
  $('#notices').replaceChildren(
    el(
      'div.notice.failed',
      { role: 'alert' },
      el('p', {}, el('strong', {}, 'The demo could not start. '), error?.message ?? String(error)),
    ),
  );
});
