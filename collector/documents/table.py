"""The documents of each command."""

from typing import Any, Final

from .advice import AdviseDocument
from .alerts import AlertsDocument
from .attached import AttachDocument
from .breakdown import BreakdownDocument
from .changes import ChangeDocument
from .comparison import DiffDocument
from .compiled import CompiledDocument
from .curves import CurvesDocument
from .daemons import StatusDocument
from .diagnosis import DoctorDocument
from .exact_view import ExactViewDocument
from .host import HostDocument
from .imported import ImportDocument, ImportRunsDocument
from .jobs import JobsDocument
from .memory import MemoryDocument
from .orders import OrderDocument
from .overview import ShowDocument
from .processes import PsDocument
from .removal import RmDocument
from .settings import ConfigDocument
from .source import SourceDocument
from .spans import SpansDocument
from .steps import StepsDocument
from .tags import TagDocument
from .view import ViewDocument
from .watched import TopDocument
from .workers import WorkersDocument

#: Command -> the types of its documents; one of them describes what the command prints.
DOCUMENTS: Final[dict[str, tuple[Any, ...]]] = {
    "advise": (AdviseDocument,),
    "alerts": (AlertsDocument,),
    "attach": (AttachDocument,),
    "breakdown": (BreakdownDocument,),
    "code": (ViewDocument, ExactViewDocument),
    "compiled": (CompiledDocument,),
    "config": (ConfigDocument,),
    "curves": (CurvesDocument,),
    "detach": (OrderDocument,),
    "diff": (DiffDocument,),
    "doctor": (DoctorDocument,),
    "follow": (ChangeDocument,),
    "graph": (ViewDocument, ExactViewDocument),
    "host": (HostDocument,),
    "import": (ImportDocument, ImportRunsDocument),
    "jobs": (JobsDocument,),
    "memory": (MemoryDocument,),
    "op": (ViewDocument, ExactViewDocument),
    "ps": (PsDocument,),
    "rm": (RmDocument,),
    "scope": (ViewDocument, ExactViewDocument),
    "show": (ShowDocument,),
    "source": (SourceDocument,),
    "spans": (SpansDocument,),
    "status": (StatusDocument,),
    "steps": (StepsDocument,),
    "tag": (TagDocument,),
    "top": (TopDocument,),
    "trace": (OrderDocument,),
    "workers": (WorkersDocument,),
}
