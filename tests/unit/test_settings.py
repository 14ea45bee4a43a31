"""Settings from the environment: defaults, types, ranges, and the names in errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.errors import EmbeddedPostgresError, SettingsError
from retrieval.settings import Settings
from retrieval.store.embedded.instance import EmbeddedPostgres


def test_defaults_are_loopback_and_embedded() -> None:
    settings = Settings.from_env({})
    assert (settings.host, settings.port, settings.uses_embedded, settings.api_key) == ("127.0.0.1", 8321, True, None)


def test_values_get_their_types_and_overrides_win() -> None:
    environ = {"TRIVET_PORT": "9000", "TRIVET_LEG_TIMEOUT_S": "0.5", "TRIVET_DATA_DIR": "/tmp/x", "TRIVET_API_KEY": ""}
    settings = Settings.from_env(environ, port=9001, host=None)
    assert (settings.port, settings.leg_timeout_s, settings.data_dir) == (9001, 0.5, Path("/tmp/x"))
    assert (settings.host, settings.api_key) == ("127.0.0.1", None)


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("TRIVET_PORT", "many", "a whole number from 0 to 65535, not 'many'"),
        ("TRIVET_PORT", "70000", "a whole number from 0 to 65535, not '70000'"),
        ("TRIVET_LEG_TIMEOUT_S", "0", "a number above 0, not '0'"),
        ("TRIVET_LEG_TIMEOUT_S", "nan", "a number above 0, not 'nan'"),
        ("TRIVET_POOL_SIZE", "1", "a whole number, at least 4, not '1'"),
        ("TRIVET_POOL_SIZE", "7.5", "a whole number, at least 4, not '7.5'"),
        ("TRIVET_EMBEDDING_CACHE_AGE_S", "-1", "a number, at least 0, not '-1'"),
        ("TRIVET_INDEX_BYTES", "1GB", "a whole number, at least 1048576, not '1GB'"),
        ("TRIVET_EMBEDDING_PROVIDER", "abacus", "one of onnx, openai, ollama, google, not 'abacus'"),
        ("TRIVET_EMBEDDING_MODEL", "word2vec", "all-MiniLM-L6-v2 with the provider onnx, not 'word2vec'"),
        ("TRIVET_LOG_LEVEL", "loud", "one of debug, info, warning, error, not 'loud'"),
        ("TRIVET_ALLOWED_HOSTS", "https://trivet.example", "names separated by commas"),
        ("TRIVET_ALLOWED_HOSTS", "trivet.example\n", "names separated by commas"),
        ("TRIVET_DATABASE_URL", "embedded\n", "'embedded' or a URL that starts with postgresql://"),
        ("TRIVET_DATABASE_URL", "mysql://ann:secret@localhost/x", "'embedded' or a URL that starts with postgresql://"),
    ],
)
def test_a_value_that_cannot_be_used(name: str, value: str, valid: str) -> None:
    """The variable is named and what it may be; a URL, which may hold a password, is not repeated."""
    with pytest.raises(SettingsError) as raised:
        Settings.from_env({name: value})
    assert str(raised.value).startswith(f"{name} must be {valid}")
    assert "secret" not in str(raised.value)


def test_a_bad_override_is_named_as_it_was_given() -> None:
    with pytest.raises(SettingsError, match=r"^data_dir must be a path, not 5$"):
        Settings.from_env({"TRIVET_DATA_DIR": "data"}, data_dir=5)
    with pytest.raises(
        SettingsError, match=r"^database_url must be 'embedded' or a URL that starts with postgresql://$"
    ):
        Settings.from_env({}, database_url="sqlite:///ann:secret@x")


@pytest.mark.parametrize("key", ["secret\n", " secret", "secret\t", "\u00a0secret", "sec\nret", "sec\udce9ret", " "])
def test_a_key_that_no_request_could_carry(key: str) -> None:
    """It would lock everybody out silently; it is not shown."""
    with pytest.raises(SettingsError, match=r"^TRIVET_API_KEY must be one line of text with no blanks around it$"):
        Settings.from_env({"TRIVET_API_KEY": key})


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("postgres://ann:p%40ss@db/notes", {"p%40ss", "p@ss"}),
        ("postgres://ann:pa[ss@db/notes", {"pa[ss"}),
        ("postgres://ann:geheim℀x@/notes", {"geheim℀x"}),
        ("postgres:///notes?user=ann&password=p%40ss&sslpassword=other", {"p%40ss", "p@ss", "other"}),
        ("postgres://ann@[::1]:5432/notes?options=-c%20a:b@c", set()),
    ],
)
def test_passwords_are_secrets_however_a_url_has_them(url: str, secrets: set[str]) -> None:
    """Also one that libpq accepts and no other URL parser does."""
    assert set(Settings(database_url=url).secrets) == {url, *secrets}


def test_folders_may_be_below_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    settings = Settings.from_env({"TRIVET_DATA_DIR": "~/data", "TRIVET_CACHE_DIR": "~/cache"})
    assert (settings.data_dir, settings.index_dir) == (Path("/home/ann/data"), Path("/home/ann/cache"))
    assert Settings(data_dir=Path("~/data")).index_dir == Path("/home/ann/data/index")


def test_only_the_embedded_database_needs_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which users in containers may lack."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 54_321)
    monkeypatch.setattr("os.getuid", lambda: 54_321)
    assert Settings.from_env({"TRIVET_DATABASE_URL": "postgresql://db/notes"}).index_dir is None
    with pytest.raises(EmbeddedPostgresError, match="TRIVET_DATA_DIR"):
        EmbeddedPostgres(Settings.from_env({}).data_dir)


@pytest.mark.parametrize("key", ["k", "two words", "sk_live-42/+==", "clé"])
def test_a_key_is_any_line(key: str) -> None:
    assert Settings.from_env({"TRIVET_API_KEY": key}).api_key == key


def test_the_bundled_embedder_may_be_named() -> None:
    environ = {"TRIVET_EMBEDDING_PROVIDER": "onnx", "TRIVET_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    assert Settings.from_env(environ) == Settings.from_env({})


def test_an_unknown_variable_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """But not empty variables, nor those that are not Trivet's."""
    Settings.from_env({"TRIVET_PROT": "9000", "TRIVET_DB_PASSWORD": "x", "TRIVET_EMPTY": "", "PGPASSWORD": "x"})
    assert caplog.messages == [
        "TRIVET_PROT is not a setting; did you mean TRIVET_PORT?",
        "TRIVET_DB_PASSWORD is not a setting",
    ]


PROVIDERS = {
    "openai": ("openai/text-embedding-3-small", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "google": ("google/gemini-embedding-001", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_has_its_usual_model_address_and_key(name: str) -> None:
    embedder, url, variable = PROVIDERS[name]
    settings = Settings.from_env({"TRIVET_EMBEDDING_PROVIDER": name, variable: "sk-usual"})
    assert (settings.embedder, settings.embedding_url, settings.embedding_api_key) == (embedder, url, "sk-usual")
    assert (settings.sends_texts, "sk-usual" in settings.secrets, "sk-usual" in repr(settings)) == (True, True, False)
    with pytest.raises(SettingsError, match=f"{name} needs a key: set TRIVET_EMBEDDING_API_KEY or {variable}"):
        Settings.from_env({"TRIVET_EMBEDDING_PROVIDER": name})


def test_ollama_needs_no_key_and_the_bundled_embedder_no_provider() -> None:
    settings = Settings.from_env({"TRIVET_EMBEDDING_PROVIDER": "ollama", "TRIVET_EMBEDDING_MODEL": "bge-m3:latest"})
    assert (settings.embedder, settings.embedding_url) == ("ollama/bge-m3:latest", "http://localhost:11434")
    assert (Settings().embedder, Settings().sends_texts) == ("all-MiniLM-L6-v2", False)


def test_a_providers_own_key_goes_to_its_own_address_alone() -> None:
    environ = {"TRIVET_EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "sk-usual"}
    elsewhere = {**environ, "TRIVET_EMBEDDING_URL": "http://[::1]:8080/v1"}
    assert Settings.from_env(elsewhere).embedding_api_key is None
    for given in (environ, elsewhere):
        assert Settings.from_env({**given, "TRIVET_EMBEDDING_API_KEY": "sk-own"}).embedding_api_key == "sk-own"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIVET_EMBEDDING_URL", "localhost:11434"),
        ("TRIVET_EMBEDDING_URL", "ftp://localhost"),
        ("TRIVET_EMBEDDING_URL", "http://ann:secret@localhost"),
        ("TRIVET_EMBEDDING_URL", "http://localhost/?key=secret"),
        ("TRIVET_EMBEDDING_URL", "http://localhost:secret"),
        ("TRIVET_EMBEDDING_API_KEY", "secret\n"),
        ("TRIVET_EMBEDDING_API_KEY", "sécret"),
        ("OPENAI_API_KEY", "secret secret"),
        ("TRIVET_EMBEDDING_MODEL", "a model"),
    ],
)
def test_a_setting_of_a_provider_that_cannot_be_used(name: str, value: str) -> None:
    """A value that may contain a password is not repeated."""
    with pytest.raises(SettingsError, match=r"^TRIVET_EMBEDDING_\w+ must be") as raised:
        Settings.from_env({"TRIVET_EMBEDDING_PROVIDER": "openai", name: value})
    assert "cret" not in str(raised.value)


@pytest.mark.parametrize("name", ["TRIVET_EMBEDDING_URL", "TRIVET_EMBEDDING_API_KEY"])
def test_the_bundled_embedder_is_nowhere_else(name: str) -> None:
    with pytest.raises(SettingsError, match="are for other servers: set TRIVET_EMBEDDING_PROVIDER to one of openai"):
        Settings.from_env({name: "http://localhost"})
