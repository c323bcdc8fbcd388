"""A headless browser, driven through its own WebDriver over plain HTTP."""
import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import shimtest

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
NEEDED = 'chromium', 'chromedriver'


def missing():
    """The reason why this machine cannot run the browser, or None."""
    shimtest.need(*NEEDED)
    try:
        socket.gethostbyname('localhost')
    except OSError:         # how chromedriver reaches what it has started
        return 'localhost has no address here'


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class Browser:
    """Use in a `with` statement: the browser ends with all of its processes."""

    def __init__(self, width=1440, height=1000, dark=False, arguments=()):
        self.size = width, height
        self.dark = dark
        self.arguments = arguments
        self.session = None

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix='browser.')
        port = free_port()
        self.url = 'http://127.0.0.1:%d' % port
        self.driver = subprocess.Popen(
            ['chromedriver', '--port=%d' % port], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.session:
            try:
                self.ask('DELETE', '')
            except (OSError, RuntimeError):
                pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def begin(self):
        options = {
            'args': ['--headless=new', '--no-sandbox', '--disable-gpu',
                     '--hide-scrollbars', '--force-device-scale-factor=1',
                     '--disable-background-networking', '--no-first-run',
                     '--user-data-dir=' + self.home,
                     '--window-size=%d,%d' % self.size, *self.arguments],
        }
        wanted = {'capabilities': {'alwaysMatch': {
            'browserName': 'chrome', 'goog:chromeOptions': options,
            'goog:loggingPrefs': {'browser': 'ALL'}}}}
        end = time.monotonic() + 60
        while self.driver.poll() is None and time.monotonic() < end:
            try:
                self.request('GET', '/status')
                break
            except OSError:
                time.sleep(0.1)
        self.session = self.request('POST', '/session', wanted)['sessionId']
        if self.dark:
            self.devtools('Emulation.setEmulatedMedia', features=[
                {'name': 'prefers-color-scheme', 'value': 'dark'}])

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {'Content-Type': 'application/json'},
            method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)['value']['message']) from None

    def ask(self, method, path, body=None):
        return self.request(method, '/session/%s%s' % (self.session, path),
                            body)

    def open(self, url):
        self.ask('POST', '/url', {'url': url})

    def run(self, script, *arguments):
        """Runs @script with @arguments and returns its result."""
        return self.ask('POST', '/execute/sync',
                        {'script': script, 'args': list(arguments)})

    def devtools(self, command, **parameters):
        return self.ask('POST', '/goog/cdp/execute',
                        {'cmd': command, 'params': parameters})

    def find(self, selector):
        found = self.ask('POST', '/element', {
            'using': 'css selector', 'value': selector})
        return '/element/' + found[ELEMENT]

    def click(self, selector):
        self.ask('POST', self.find(selector) + '/click', {})

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0])'
                        '.textContent', selector)

    def choose(self, selector, value):
        """Chooses an option of a <select>, as a user would."""
        self.run('const [select, value] = [document.querySelector('
                 'arguments[0]), arguments[1]]; select.value = value; '
                 'select.dispatchEvent(new Event("change"))', selector, value)

    def keys(self, keys):
        """Presses @keys one after another in the focused element."""
        actions = []
        for key in keys:
            actions += [{'type': 'keyDown', 'value': key},
                        {'type': 'keyUp', 'value': key}]
        self.ask('POST', '/actions', {'actions': [
            {'type': 'key', 'id': 'keyboard', 'actions': actions}]})

    def point(self, x, y, click=False):
        actions = [{'type': 'pointerMove', 'x': int(x), 'y': int(y),
                    'duration': 0}]
        if click:
            actions += [{'type': 'pointerDown', 'button': 0},
                        {'type': 'pointerUp', 'button': 0}]
        self.ask('POST', '/actions', {'actions': [
            {'type': 'pointer', 'id': 'mouse', 'actions': actions}]})

    def wait(self, script, *arguments, seconds=60):
        """Waits until @script returns a true value, and returns that value."""
        end = time.monotonic() + seconds
        while True:
            result = self.run(script, *arguments)
            if result:
                return result
            if time.monotonic() > end:
                raise RuntimeError('waited in vain for ' + script)
            time.sleep(0.05)

    def messages(self):
        """The messages of the page and the browser since the last call, without the advice
        on reading pixels often: only tests do."""
        return [entry['message'] for entry in self.ask(
            'POST', '/se/log', {'type': 'browser'})
            if 'willReadFrequently' not in entry['message']]

    def screenshot(self):
        return base64.b64decode(self.ask('GET', '/screenshot'))

    def print(self):
        return base64.b64decode(self.ask('POST', '/print',
                                         {'background': True}))


KEYS = {'left': '\ue012', 'up': '\ue013', 'right': '\ue014', 'down': '\ue015',
        'enter': '\ue007', 'escape': '\ue00c', 'home': '\ue011'}
