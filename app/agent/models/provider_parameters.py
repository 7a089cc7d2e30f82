"""What goes with a request beside its messages: system text, tools, and the form of the answer."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition as LibraryTool

from app.agent.prompt import OutputSchema, Prompt, ToolDefinition
from app.conversation.blocks import ToolCall


def request_parameters(
    prompt: Prompt, profile: ModelProfile, server_tools: Sequence[AbstractNativeTool] = ()
) -> ModelRequestParameters:
    """System text, tools and output. An answer's form is asked for in the provider's own way if the model
    has one, and else in words that join the system text."""
    asked = prompt.output
    native = profile.get("supports_json_schema_output", False)
    return ModelRequestParameters(
        function_tools=[_tool(tool) for tool in prompt.tools],
        native_tools=list(server_tools),
        instruction_parts=[InstructionPart(content=prompt.system)] if prompt.system else None,
        output_mode="text" if asked is None else "native" if native else "prompted",
        output_object=None if asked is None else _output(asked),
    )


def request_settings(prompt: Prompt, system: str) -> ModelSettings | None:
    """OpenAI's own tools are known by the ids of their items, which go back for models that reason, and
    otherwise only if that is asked for."""
    ran = any(
        isinstance(block, ToolCall) and block.server
        for message in prompt.messages
        if message.provider == system
        for block in message.content
    )
    return cast(ModelSettings, {"openai_send_reasoning_ids": True}) if ran else None


def _tool(tool: ToolDefinition) -> LibraryTool:
    return LibraryTool(
        name=tool.name,
        description=tool.description or None,
        parameters_json_schema=cast(dict[str, Any], tool.parameters),
        # The schema goes out as it is: strictness would rewrite it, and few servers know of it.
        strict=False,
    )


def _output(asked: OutputSchema) -> OutputObjectDefinition:
    return OutputObjectDefinition(
        name=asked.name,
        description=asked.description or None,
        json_schema=cast(dict[str, Any], asked.schema),
    )
