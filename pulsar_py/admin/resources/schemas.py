"""REST resource of schemas: upload, read by version, delete, check compatibility.

A schema belongs to a topic's name: the topic need not exist, its namespace has to for an upload.

Source: SchemasResourceBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Flag, PathNumber
from pulsar_py.admin.http_messages import (
    EMPTY,
    HTML,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
)
from pulsar_py.admin.json_values import LONG_BITS
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.schema_json import TYPE_NAMES, definition_of, schema_json
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.policies.effective_settings import effective_settings
from pulsar_py.server.schema_registry import SchemaDefinition, SchemaPolicies, StoredSchema
from pulsar_py.server.schema_registry.definition import decode_version, encode_version
from pulsar_py.server.schema_registry.validation import check_definition
from pulsar_py.server.security.actions import Action

TOPIC: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
_MAX_VERSION: Final = 2**63 - 1
_VERSION: Final = PathNumber("version", LONG_BITS)
_FORCE: Final = Flag("force")


class SchemaBody(Struct, frozen=True):
    """A schema: its type, its definition as text, and properties."""

    type: str | None = None
    schema: str = ""
    properties: dict[str, str] = field(default_factory=dict)


_SCHEMA: Final = Body(SchemaBody, "schema")


class Schemas:
    """The calls under `/admin/v2/schemas`."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._schemas = broker.schemas

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC + "/schema", self.latest, Action.GET_METADATA, answer="SchemaVersionAnswer"),
            get(
                TOPIC + "/schema/{version}",
                self.version,
                Action.GET_METADATA,
                _VERSION,
                answer="SchemaVersionAnswer",
            ),
            get(TOPIC + "/schemas", self.all, Action.GET_METADATA, answer="SchemasAnswer"),
            get(
                TOPIC + "/metadata",
                self.metadata,
                Action.GET_METADATA,
                answer="SchemaMetadata",
                may_be_empty=True,
            ),
            post(
                TOPIC + "/schema",
                self.upload,
                Action.PRODUCE,
                _SCHEMA,
                answer="PostSchemaAnswer",
                errors=(HTTPStatus.UNPROCESSABLE_ENTITY,),
            ),
            delete(
                TOPIC + "/schema",
                self.delete,
                Action.UPDATE_METADATA,
                _FORCE,
                answer="VersionAnswer",
            ),
            post(
                TOPIC + "/compatibility",
                self.check,
                Action.UPDATE_METADATA,
                _SCHEMA,
                answer="CompatibilityAnswer",
                status=HTTPStatus.ACCEPTED,
                errors=(HTTPStatus.UNPROCESSABLE_ENTITY,),
            ),
            post(
                TOPIC + "/version",
                self.find_version,
                Action.GET_METADATA,
                _SCHEMA,
                answer="VersionAnswer",
            ),
        )

    async def latest(self, request: Request) -> Response:
        """Return the newest version."""
        return _found(await self._schemas.latest(topic_of(request).schema_id))

    async def version(self, request: Request) -> Response:
        """Return one version.

        Raises:
            HttpError: 404 if there is none, 400 if it is no number (500 in Pulsar).
        """
        number = _VERSION.of(request)
        if not 0 <= number <= _MAX_VERSION:
            return _found(None)
        schema_id = topic_of(request).schema_id
        return _found(await self._schemas.get(schema_id, encode_version(number)))

    async def all(self, request: Request) -> Response:
        """Return all versions since the last deletion, oldest first."""
        history = await self._schemas.history(topic_of(request).schema_id)
        return json_response({"getSchemaResponses": [schema_json(each) for each in history]})

    async def metadata(self, request: Request) -> Response:
        """Return where the versions are stored."""
        index = [
            {
                "version": each.version,
                "ledgerId": each.position.ledger_id,
                "entryId": each.position.entry_id,
            }
            for each in await self._schemas.index(topic_of(request).schema_id)
        ]
        if not index:
            return EMPTY
        return json_response({"info": index[-1], "index": index})

    async def upload(self, request: Request) -> Response:
        """Store a schema as the next version, if it is new and compatible.

        It counts as an administrator's, so that updates may be forbidden to producers.
        """
        name = topic_of(request)
        definition = _read_definition(request)
        await require_namespace(self._broker, name.namespace_name, NOT_THERE)
        try:
            check_definition(definition)
        except IncompatibleSchemaError as error:
            return _refused(HTTPStatus.UNPROCESSABLE_ENTITY, error)
        policies = await self._policies_of(name)
        try:
            version = await self._schemas.put_if_absent(
                name.schema_id, definition, strategy=policies.strategy
            )
        except IncompatibleSchemaError as error:
            return _refused(HTTPStatus.CONFLICT, error)
        return json_response({"version": {"version": decode_version(version)}})

    async def delete(self, request: Request) -> Response:
        """Delete a schema: its versions stay behind a tombstone, or go with `force`."""
        schema_id = topic_of(request).schema_id
        if _FORCE.of(request):
            await self._schemas.purge(schema_id)
            return json_response({"version": -1})
        version = await self._schemas.delete(schema_id)
        return json_response({"version": 0 if version is None else decode_version(version)})

    async def check(self, request: Request) -> Response:
        """Say whether a schema could be the next version; in Pulsar the answer is 500 if not."""
        name = topic_of(request)
        definition = _read_definition(request)
        policies = await self._policies_of(name)
        is_compatible = True
        try:
            check_definition(definition)
        except IncompatibleSchemaError as error:
            return _refused(HTTPStatus.UNPROCESSABLE_ENTITY, error)
        try:
            await self._schemas.check_new(name.schema_id, definition, strategy=policies.strategy)
        except IncompatibleSchemaError:
            is_compatible = False
        return json_response(
            {
                "compatibility": is_compatible,
                "schemaCompatibilityStrategy": policies.strategy.value,
            },
            status=HTTPStatus.ACCEPTED,
        )

    async def find_version(self, request: Request) -> Response:
        """Return the version of an equal schema, -1 if there is none."""
        definition = _read_definition(request)
        version = await self._schemas.find_version(topic_of(request).schema_id, definition)
        return json_response({"version": -1 if version is None else decode_version(version)})

    async def _policies_of(self, name: TopicName) -> SchemaPolicies:
        """The effective policies, whether or not the topic is there."""
        resources = self._broker.resources
        topic = await resources.policies_of_topic(name)
        namespace = await resources.namespaces.get(name.namespace_name)
        return effective_settings(self._broker.topics.settings.topic, namespace, topic).schema


def _read_definition(request: Request) -> SchemaDefinition:
    """The schema in a body.

    Raises:
        UnreadableBodyError: There is none, or no such type, or a field is wrong. Pulsar answers 500
            to some of it.
    """
    value = _SCHEMA.required(request, "a schema is required: type, schema and properties")
    definition = definition_of(value.type, value.schema, value.properties)
    if definition is None:
        raise UnreadableBodyError(
            f"no schema of type {value.type!r:.100}: the type is one of "
            f"{', '.join(TYPE_NAMES.values())}, a KEY_VALUE schema is a JSON text of key and value"
        )
    return definition


def _found(stored: StoredSchema | None) -> Response:
    if stored is None:
        raise HttpError(HTTPStatus.NOT_FOUND, "Schema not found")
    return json_response(schema_json(stored))


def _refused(status: HTTPStatus, error: IncompatibleSchemaError) -> Response:
    """A refusal as a page, which names the reason: clients show it as it is."""
    text = str(error).replace("&", "&amp;").replace("<", "&lt;")
    page = f"<html><body><h2>HTTP ERROR {status.value}</h2><p>{text}</p></body></html>"
    return Response(status, page.encode("iso-8859-1", "xmlcharrefreplace"), HTML)
