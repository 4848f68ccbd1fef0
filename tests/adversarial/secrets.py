"""Forms in which a secret may stand in a matrix, a log, a report or another tool's results: made up, and different
each time."""

import base64
import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

ALPHANUMERIC = string.ascii_letters + string.digits
BASE64 = ALPHANUMERIC + "+/"
URL_SAFE = ALPHANUMERIC + "-_"
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits


@dataclass(frozen=True)
class Planted:
    """A text, and what of it must not be seen again."""

    text: str
    secrets: tuple[str, ...]


Form = Callable[[Random], Planted]


def mixed(random: Random, alphabet: str, length: int) -> str:
    """Random characters, letters and digits among them, at both ends one of them."""
    while True:
        text = "".join(random.choices(alphabet, k=length))
        ends = text[0].isalnum() and text[-1].isalnum()
        if ends and any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
            return text


def word(random: Random) -> str:
    """A password as people and generators make them."""
    return mixed(random, ALPHANUMERIC, random.randint(10, 24))


def _shape(before: str, alphabet: str, length: int, after: str = "") -> Form:
    """A vendor's token: its mark and random characters, in the middle of a sentence."""

    def form(random: Random) -> Planted:
        secret = mixed(random, alphabet, length)
        return Planted(f"login {before}{secret}{after} done", (secret,))

    return form


def _beside(template: str) -> Form:
    """A password beside something that tells of it."""

    def form(random: Random) -> Planted:
        secret = word(random)
        return Planted(template.replace("%", secret), (secret,))

    return form


def _both(template: str) -> Form:
    """Two passwords or keys in the places of `%` and `@`."""

    def form(random: Random) -> Planted:
        secrets = mixed(random, ALPHANUMERIC, 20), mixed(random, ALPHANUMERIC, 20)
        text = template.replace("%", secrets[0]).replace("@", secrets[1])
        return Planted(text, secrets)

    return form


def _coloured_token(random: Random) -> Planted:
    """A token of which a part is highlighted."""
    parts = mixed(random, ALPHANUMERIC, 17), mixed(random, ALPHANUMERIC, 17)
    return Planted(f"login hf_{parts[0]}\x1b[1m{parts[1]}\x1b[0m done", parts)


def _key(kind: str, newline: str = "\n") -> Form:
    """A private key with its body."""

    def form(random: Random) -> Planted:
        body = [mixed(random, BASE64, 64) for _ in range(random.randint(2, 20))]
        lines = [f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----"]
        return Planted(newline.join(lines), tuple(body))

    return form


def _basic(random: Random) -> Planted:
    coded = base64.b64encode(f"user:{word(random)}".encode()).decode()
    return Planted(f"Authorization: Basic {coded}", (coded,))


def _web_token(random: Random) -> Planted:
    parts = [mixed(random, URL_SAFE, length) for length in (30, 60, 43)]
    return Planted(f"id eyJ{parts[0]}.eyJ{parts[1]}.{parts[2]} ok", tuple(parts))


def _slack(random: Random) -> Planted:
    secret = mixed(random, ALPHANUMERIC, 24)
    return Planted(f"xoxb-123456789012-123456789012-{secret}", (secret,))


VENDORS: dict[str, dict[int, tuple[str, ...]]] = {
    UPPER: {16: ("AKIA", "ASIA"), 46: ("rpa_", "AGE-SECRET-KEY-1")},
    HEX: {32: ("dapi", "SK"), 64: ("dop_v1_", "sk-or-v1-")},
    LOWER: {48: ("csk-",)},
    ALPHANUMERIC: {
        24: ("sk_live_", "fw_"),
        34: ("hf_", "api_org_", "ghp_", "gho_", "ghs_", "npm_", "r8_"),
        48: ("sk-", "gsk_", "pplx-", "xai-", "wandb_v1_"),
    },
    URL_SAFE: {
        20: ("glpat-", "glrt-"),
        27: ("dckr_pat_", "AIza", "tgp_v1_"),
        60: ("nvapi-", "ya29.", "hvs.", "pypi-", "sk-proj-", "sk-ant-api03-"),
    },
    ALPHANUMERIC + "_": {82: ("github_pat_",)},
}
"""Marks of vendors' tokens by the characters that follow, and by the fewest of them that a vendor's have."""

FORMS: dict[str, Form] = {
    **{
        mark: _shape(mark, alphabet, length)
        for alphabet, lengths in VENDORS.items()
        for length, marks in lengths.items()
        for mark in marks
    },
    # Other tokens of well-known shapes.
    "slack": _slack,
    "slack-webhook": _shape(
        "https://hooks.slack.com/services/T0AB/B0CD/", ALPHANUMERIC, 24
    ),
    "sendgrid": lambda random: _shape(
        f"SG.{mixed(random, URL_SAFE, 22)}.", URL_SAFE, 43
    )(random),
    "azure-storage": _shape("AccountKey=", BASE64, 86, "=="),
    "telegram": _shape("123456789:", URL_SAFE, 35),
    "discord": lambda random: _shape(
        f"M{mixed(random, ALPHANUMERIC, 23)}.{mixed(random, ALPHANUMERIC, 6)}.",
        URL_SAFE,
        27,
    )(random),
    "mailchimp": _shape("", HEX, 32, "-us12"),
    "json-web-token": _web_token,
    "langsmith": _shape("lsv2_pt_", HEX, 32, "_0123456789"),
    "token-after-escaped-line-break": _shape("a\\nhf_", ALPHANUMERIC, 34),
    "token-in-colours": _coloured_token,
    # Private keys.
    "key-rsa": _key("RSA PRIVATE KEY"),
    "key-openssh": _key("OPENSSH PRIVATE KEY"),
    "key-plain": _key("PRIVATE KEY"),
    "key-encrypted": _key("ENCRYPTED PRIVATE KEY"),
    "key-escaped": _key("EC PRIVATE KEY", "\\n"),
    "key-pgp": _key("PGP PRIVATE KEY BLOCK"),
    # Addresses.
    "https": _beside("https://me:%@example.org/repository.git"),
    "postgres": _beside("postgresql://me:%@db:5432/runs"),
    "redis-without-user": _beside("redis://:%@cache:6379/0"),
    "mongodb": _beside("mongodb+srv://me:%@cluster.example.net/x?retryWrites=true"),
    "amqp": _beside("amqp://me:%@queue//"),
    "ssh": _beside("ssh://me:%@host:22/srv"),
    "address-with-slash": _beside("mysql://me:a/%@db/x"),
    "address-in-json": _beside('{"url": "https:\\/\\/me:%@example.org\\/x"}'),
    "address-token-alone": _shape("https://", ALPHANUMERIC, 40, "@github.com/a/b"),
    "address-parameter": _beside("GET /v1/models?access_token=%&limit=5"),
    "address-signature": _beside("https://blob.example.net/a?sv=2024&sig=%&se=1"),
    "login-without-scheme": _beside("rsync me:%@host.example.org::models"),
    # Headers and cookies.
    "bearer": _beside("Authorization: Bearer %"),
    "basic": _basic,
    "authorization-token": _beside("authorization: token %"),
    "proxy-authorization": _beside("Proxy-Authorization: Basic %=="),
    "x-api-key": _beside("curl -H 'X-Api-Key: %' http://127.0.0.1:8000"),
    "x-auth-token": _beside("> x-auth-token: %"),
    "cookie": _beside("Cookie: theme=dark; sid=%; path=/"),
    "set-cookie": _beside("Set-Cookie: session=%; HttpOnly"),
    "header-in-python": _beside(
        "headers={'Authorization': 'Bearer %', 'Accept': '*/*'}"
    ),
    # Names beside their values.
    "variable-token": _beside("export HF_TOKEN=%"),
    "variable-pass": _beside("DB_PASS=%"),
    "variable-pat": _beside("AZURE_DEVOPS_EXT_PAT=%"),
    "variable-pwd": _beside("MYSQL_PWD=%"),
    "variable-key": _beside("WANDB_API_KEY=%"),
    "variable-quoted": _beside('export REGISTRY_PASSWORD="% and more"'),
    "variable-secret": _beside("AWS_SECRET_ACCESS_KEY=%"),
    "json-password": _beside('{"user": "me", "password": "%"}'),
    "json-api-key": _beside('{"apiKey": "%", "n": 5}'),
    "yaml-client-secret": _beside("client_secret: %"),
    "python-repr": _beside("Namespace(model='x', hf_token='%', tp=1)"),
    "ini": _beside("db.password = %"),
    "said-password": _beside("the password is %, do not tell"),
    "said-api-key": _beside("using API key %"),
    "netrc": _beside("machine example.org login me password %"),
    "curl-user": _beside("curl -u me:% http://127.0.0.1"),
    "flag-in-text": _beside("vllm serve m --hf-token % --port 8000"),
    "flag-equals": _beside("--api-key=%"),
    "flags-in-list": _beside("['serve', '--api-key', '%', '--port', '8000']"),
    "flags-in-json": _beside('{"argv": [\n  "--hub-token",\n  "%"\n]}'),
    "flag-of-two-keys": _both("vllm serve m --api-key % @ --port 8000"),
    "flag-of-two-keys-in-json": _both('["--api-key", "%", "@", "--port", "8000"]'),
    "docker-login": _beside("docker login -u me -p % nvcr.io"),
    "docker-login-in-one": _beside("docker login -u me -p% nvcr.io"),
    "call-of-its-name": _beside("client.set_api_key('%')"),
    "xml-value": _beside('<password value="%"/>'),
    "podman-login": _beside("podman login --username me -p=% quay.io"),
    "login-in-list": _beside("['docker', 'login', '-u', 'me', '-p', '%']"),
    "sshpass": _beside("sshpass -p % ssh me@host"),
    "mysql": _beside("mysql -uroot -p% runs"),
    "mariadb": _beside("mariadb-dump -u root -p'%' runs"),
    "7z": _beside("7z a -p% runs.7z data"),
    "login-from-pipe": _beside("echo % | docker login --password-stdin"),
    "cookie-set": _beside("session.cookies.set('sid', '%')"),
    "redis-cli": _beside("redis-cli -h cache -a % ping"),
    "wandb-login": _shape("wandb login --relogin ", HEX, 40),
    # Lists, tables, pairs and elements beside a name.
    "vllm-arguments": _both(
        "non-default args: {'model': 'm', 'api_key': ['%', '@'], 'port': 8000}"
    ),
    "namespace-list": _beside("Namespace(host=None, api_key=['%'], port=8000)"),
    "list-without-quotes": _both("api_keys: [%, @]"),
    "tuple-of-keys": _both("api_keys=('%', '@')"),
    "set-of-keys": _both("api_keys={'%', '@'}"),
    "variable-of-two-keys": _both("VLLM_API_KEYS=%,@"),
    "cookies-in-python": _both("get(url, cookies={'session': '%', 'id': '@'})"),
    "table-of-secrets": _both("secrets={'first': '%', 'second': '@'}"),
    "login-in-python": _both("auth=('%', '@')"),
    "secret-string": _beside("Config(secret=SecretStr('%'))"),
    "pair": _beside("[('api_key', '%'), ('port', 80)]"),
    "pair-of-bytes": _beside("[(b'cookie', b'sid=%')]"),
    "cookie-in-python": _beside("<RequestsCookieJar[<Cookie sid=% for h/>]>"),
    "xml": _beside("<server><password>%</password></server>"),
    "xml-with-attribute": _beside('<c:apiKey type="string">%</c:apiKey>'),
    "xml-entry": _beside('<add key="ApiKey" value="%" />'),
    "entry-of-variables": _beside('{"name": "HF_TOKEN", "value": "%"}'),
    "coloured-assignment": _beside("\x1b[32mapi_key\x1b[0m=\x1b[33m%\x1b[0m"),
    "coloured-link": _beside("\x1b]8;;https://h/?token=%\x1b\\link\x1b]8;;\x1b\\"),
    "coloured-in-json": _beside('"\\u001b[32mapi_key\\u001b[0m=%"'),
    "lines-yaml-list": _both("api_keys:\n  - %\n  - @\nport: 80"),
    "lines-yaml-list-not-indented": _both('api_keys:\n- %\n- "@"\nport: 80'),
    "lines-yaml-block": _beside("password: |\n  %\nport: 1"),
    "lines-yaml-entry": _beside("env:\n- name: HF_TOKEN\n  value: %"),
    "lines-json-list": _both('"api_keys": [\n  "%",\n  "@"\n]'),
    "lines-json-entry": _beside('{\n "name": "HF_TOKEN",\n "value": "%"\n}'),
    "lines-xml": _beside("<password>\n  %\n</password>"),
    "lines-flags": _both('[\n"--api-key",\n"%",\n"@",\n"--port"\n]'),
}
