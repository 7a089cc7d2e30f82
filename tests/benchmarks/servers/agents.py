"""The agent that is measured: the demo model without delays."""

from app.agent.agent import Agent
from app.agent.models.demo import DemoModel

assistant = Agent("assistant", model=DemoModel(delay=0))
