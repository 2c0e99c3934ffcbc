"""The layers of the source tree: allowed includes, and the only users of some libraries and functions. Checked by check_layering.py."""

import re

# Allowed includes: folder -> folders, or single headers. A folder may always include itself. The longest prefix of a file's path counts, and
# entries stand for just that folder, not for those below it.
BASE = ["base", "base/failpoint", "base/text", "base/os", "base/net", "base/net/peer"]
COLLECTIVE_BACKEND = [*BASE, "collectives"]
ALLOWED = {
    "base": [],
    "base/failpoint": ["base"],
    "base/text": ["base"],
    "base/os": ["base", "base/text"],
    "base/net": ["base", "base/text"],
    "base/net/peer": ["base", "base/net"],
    "base/console": ["base", "base/os", "base/text"],
    "base/settings": ["base", "base/text"],
    "proto": [],
    "rendezvous/placement": [],
    "rendezvous/phrases": ["base/text/names.h"],
    "rendezvous/policy": ["base/settings/on_corruption.h", "rendezvous/placement"],
    "rendezvous/lifecycle": [],
    "rendezvous/snapshot": ["base/ids.h", "proto/snapshot.pb.h"],
    "rendezvous/membership": [
        "base/text/duration_text.h", "base/ids.h", "base/status_macros.h",
        "proto/snapshot.pb.h", "rendezvous/placement", "rendezvous/phrases", "rendezvous/policy", "rendezvous/lifecycle", "rendezvous/snapshot",
    ],
    "rendezvous/membership/decisions": [
        "base/text/duration_text.h", "base/ids.h", "rendezvous/membership", "rendezvous/phrases", "rendezvous/placement", "rendezvous/policy",
    ],
    "rendezvous/membership/views": [
        "base/text/duration_text.h", "base/ids.h", "rendezvous/lifecycle", "rendezvous/membership", "rendezvous/membership/decisions",
        "rendezvous/phrases",
    ],
    "rendezvous/membership/transitions": [
        "base/text/duration_text.h", "base/ids.h", "base/status_macros.h", "proto/snapshot.pb.h", "rendezvous/membership",
        "rendezvous/membership/decisions", "rendezvous/membership/views",
        "rendezvous/placement", "rendezvous/phrases", "rendezvous/policy", "rendezvous/lifecycle", "rendezvous/snapshot",
    ],
    "rendezvous/journal": [*BASE, "base/settings/on_corruption.h", "proto", "rendezvous/membership", "rendezvous/policy", "rendezvous/snapshot"],
    "rendezvous/security": [*BASE, "proto"],
    "rendezvous/store": [*BASE, "proto", "rendezvous/journal", "rendezvous/policy", "rendezvous/security"],
    "rendezvous/etcd": [
        *BASE, "proto", "rendezvous/journal", "rendezvous/membership", "rendezvous/policy", "rendezvous/security", "rendezvous/store",
        "rendezvous/transport",
    ],
    "rendezvous/bootstrap": [*BASE, "proto", "rendezvous/security"],
    "rendezvous/transport": [*BASE, "proto", "rendezvous/security", "rendezvous/placement"],
    "rendezvous/reporting": [*BASE, "rendezvous/membership", "rendezvous/phrases"],
    "rendezvous/server": [
        *BASE, "base/settings/on_corruption.h", "proto", "rendezvous/snapshot", "rendezvous/membership", "rendezvous/policy", "rendezvous/journal",
        "rendezvous/security", "rendezvous/transport", "rendezvous/bootstrap", "rendezvous/reporting", "rendezvous/placement",
        "rendezvous/store",
    ],
    "rendezvous/c_api": [
        *BASE, "rendezvous/server/server.h", "rendezvous/policy/job_spec.h", "rendezvous/reporting", "rendezvous/security/protobuf_log.h",
        "rendezvous/security/token_file.h",
    ],
    "rendezvous/client": [*BASE, "proto", "rendezvous/security", "rendezvous/transport"],
    "options": [*BASE, "rendezvous/policy"],
    "rendezvous/daemon": [
        *BASE, "proto", "rendezvous/server", "rendezvous/membership", "rendezvous/policy", "rendezvous/journal",
        "rendezvous/security", "rendezvous/reporting", "rendezvous/store", "rendezvous/etcd", "base/settings", "options",
    ],
    "rehearsal": [
        "base/ids.h",
        "base/settings/on_corruption.h",
        "base/status_macros.h",
        "base/text",
        "rendezvous/lifecycle",
        "rendezvous/membership",
    ],
    "rehearsal/page": [*BASE],
    "rehearsal/worker": [*BASE, "collectives", "rehearsal/page"],
    "agent/protocol": [*BASE, "proto"],
    "agent/output": [*BASE, "base/console", "proto", "agent/protocol"],
    "agent/inspection": [*BASE, "proto", "agent/output"],
    "agent/process": [*BASE, "proto", "agent/inspection", "agent/output", "agent/protocol"],
    "agent/copies": [*BASE, "worker_runtime/commit_store"],
    "agent/restarter": [
        *BASE, "base/settings", "proto", "rendezvous/placement", "rendezvous/client", "collectives/key_exchange.h", "worker_runtime/session",
    ],
    "agent": [
        *BASE, "proto", "rendezvous/bootstrap", "rendezvous/client", "rendezvous/security", "rendezvous/placement", "rendezvous/transport",
        "agent/protocol", "agent/output", "agent/inspection", "agent/process", "agent/copies", "agent/restarter", "base/settings", "options",
        "rehearsal/page",
    ],
    "launcher/allocation": ["base"],
    "launcher/discovery": [*BASE, "rendezvous/membership"],
    "launcher/spawn": [*BASE, "proto", "agent/protocol"],
    "launcher/report": [*BASE, "base/console", "proto", "rendezvous/membership", "rendezvous/reporting"],
    "launcher/cli": [*BASE, "base/settings", "options", "rendezvous/placement", "launcher/allocation"],
    "launcher/plan": [
        *BASE, "base/settings", "rendezvous/membership", "launcher/allocation", "launcher/cli", "launcher/discovery", "launcher/spawn",
        "rehearsal",
    ],
    "launcher/faults": [*BASE, "proto", "rendezvous/server", "rendezvous/membership", "rendezvous/policy", "launcher/plan", "rehearsal"],
    "launcher/job": [
        *BASE, "base/console", "proto", "rendezvous/server", "rendezvous/membership", "rendezvous/reporting",
        "rendezvous/security", "launcher/plan", "launcher/discovery", "launcher/spawn", "launcher/report", "launcher/faults",
    ],
    "launcher": [
        *BASE, "base/console", "proto", "rendezvous/client", "rendezvous/placement", "rendezvous/reporting", "rendezvous/security",
        "launcher/cli", "launcher/plan", "launcher/job", "launcher/report",
    ],
    "collectives": [*BASE],
    "collectives/peer": COLLECTIVE_BACKEND,
    "collectives/inproc": COLLECTIVE_BACKEND,
    "collectives/links": COLLECTIVE_BACKEND,
    "collectives/tcp": [*COLLECTIVE_BACKEND, "collectives/links", "collectives/peer"],
    "collectives/gloo": [*COLLECTIVE_BACKEND, "collectives/links"],
    "collectives/shm/segment": COLLECTIVE_BACKEND,
    "collectives/shm": [*COLLECTIVE_BACKEND, "collectives/links/patience.h", "collectives/shm/segment"],
    "collectives/nccl": COLLECTIVE_BACKEND,
    "collectives/hierarchical": COLLECTIVE_BACKEND,
    "collectives/adasum": COLLECTIVE_BACKEND,
    "collectives/messages": [
        *COLLECTIVE_BACKEND, "collectives/peer", "collectives/tcp/link_address.h", "collectives/tcp/link_dialer.h",
        "collectives/shm/segment", "collectives/shm/shm_links.h", "collectives/shm/shm_mailbox.h",
        "collectives/hierarchical/host_exchange.h", "collectives/hierarchical/host_layout.h", "collectives/hierarchical/host_reach.h",
    ],
    "worker_runtime/negotiation/tuning": ["base/settings/runtime_env.h"],
    "worker_runtime/negotiation": [
        "base/status_macros.h", "base/text/duration_text.h", "base/settings/runtime_env.h", "proto/negotiation.pb.h", "collectives/types.h",
        "worker_runtime/negotiation/tuning",
    ],
    "worker_runtime/timeline": [*BASE, "proto", "collectives", "worker_runtime/negotiation"],
    "worker_runtime/control": [*BASE, "proto", "collectives", "collectives/peer"],
    "worker_runtime/engine": [
        *BASE, "base/settings/runtime_env.h", "proto", "collectives", "collectives/adasum",
        "worker_runtime/negotiation", "worker_runtime/negotiation/tuning", "worker_runtime/timeline", "worker_runtime/control",
    ],
    "worker_runtime/session": [
        *BASE, "base/settings/on_corruption.h", "proto", "rendezvous/client", "rendezvous/security", "rendezvous/placement", "rendezvous/transport",
        "collectives/key_exchange.h", "collectives/types.h",
    ],
    "worker_runtime/commit_store": [*BASE],
    "worker_runtime/group": [
        *BASE, "base/settings/runtime_env.h", "collectives", "collectives/messages", "collectives/peer",
        "worker_runtime/negotiation", "worker_runtime/control", "worker_runtime/engine",
    ],
    "worker_runtime/api": [
        *BASE, "base/settings", "proto", "rendezvous/client", "rendezvous/security",
        "collectives", "collectives/peer", "collectives/tcp", "collectives/gloo", "collectives/inproc", "collectives/shm", "collectives/nccl",
        "collectives/hierarchical", "collectives/adasum", "collectives/messages",
        "worker_runtime/negotiation", "worker_runtime/negotiation/tuning", "worker_runtime/timeline", "worker_runtime/control",
        "worker_runtime/engine", "worker_runtime/session", "worker_runtime/commit_store", "worker_runtime/group",
        "rehearsal/page", "rehearsal/worker",
    ],
    # The libraries that TensorFlow and JAX load. They find the runtime at run time, by its C ABI.
    "frameworks": ["worker_runtime/api/hvd_c_api.h"],
    "frameworks/tensorflow": ["frameworks", "worker_runtime/api/hvd_c_api.h"],
    "frameworks/jax": ["frameworks", "worker_runtime/api/hvd_c_api.h"],
    "examples/scheduler": [*BASE, "rendezvous/server/server.h"],
}  # fmt: skip

# Folders whose code is a function of its arguments: no thread, lock, socket, clock, file, environment or log. Their files, except tests, include only
# these headers from outside of the tree. Headers of the tree are checked by ALLOWED.
PURE = [
    "rehearsal",
    "rendezvous/lifecycle", "rendezvous/membership", "rendezvous/membership/decisions", "rendezvous/membership/transitions",
    "rendezvous/membership/views", "rendezvous/phrases", "rendezvous/placement", "rendezvous/policy",
    "worker_runtime/negotiation", "worker_runtime/negotiation/tuning",
]  # fmt: skip
PURE_HEADERS = re.compile(
    r"(algorithm|array|cmath|csignal|cstddef|cstdint|deque|functional|iterator|limits|list|map|memory|numeric|optional|random|set|string|string\.h"
    r"|string_view|tuple|type_traits|unordered_map|unordered_set|utility|variant|vector"
    r"|absl/(algorithm|container|functional|hash|meta|numeric|status|strings|types)/\w+\.h|absl/time/time\.h)$"
)

# These may include anything, and nothing but tests may include them. What a folder offers to tests only is named *_test_util.h or lies in testing/.
TEST_FOLDERS = ("tests", "tools")
TEST_FILE = re.compile(r"(_test\.cc|_test_util\.(h|cc)|/testing/.*|_testing\.(h|cc)|_fuzz\.cc|_bench\.cc)$")
# What tests of any folder may use: shared fakes, ranks that are threads, certificates of a job, a daemon within the process.
FOR_TESTS = (
    "tests/",
    "rendezvous/security/",
    "rendezvous/server/",
    "collectives/inproc/",
    "collectives/peer/",
    "collectives/shm/",
    "collectives/tcp/",
    "collectives/nccl/",
    "collectives/conformance/",
    "worker_runtime/commit_store/",
)

# <prefix of an include> -> the folders that may have it, with all below them.
THIRD_PARTY = {
    "grpc": [
        "rendezvous/server",
        "rendezvous/client",
        "rendezvous/security",
        "rendezvous/transport",
        "rendezvous/etcd",
    ],
    "gloo/": ["collectives/gloo"],
    "nccl": ["collectives/nccl"],
    "CLI/": ["options"],
    "yaml-cpp/": ["options"],
    "spdlog/": ["base"],
    "openssl/": ["base", "rendezvous/security"],
}

# pattern -> (the files that may have it, why, whether tests are held to it too)
ONLY_IN = {
    r"\b(secure_)?getenv\s*\(": (["base/env.h", "base/env.cc"], "the environment is read in base/env only", False),
    r"\benviron\b": (["base/env.cc", "base/os/process.cc"], "the environment is read in base/env only", False),
    r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|clock_nanosleep)\s*\(|(?<![\w:.>])(::)?sleep\s*\(": (
        ["base/clock.cc"], "only base/clock.cc sleeps; wait for an event", True,
    ),
    r"_clock::now\s*\(|\b(clock_gettime|gettimeofday)\s*\(|\bstd::time\s*\(": (
        ["base/os/boot_time.cc", "base/clock.cc", "base/deadline_timer.cc"], "the clock is read in base/clock.cc only; take a Clock&", False,
    ),
    # Those beside base show limits as they were set.
    r"\bFormatDuration\s*\(": (
        ["base/text/duration_text.cc", "collectives/shm/segment/segment_setup_host.cc",
         "worker_runtime/control/control_channel.cc", "worker_runtime/control/mail_control_channel.cc",
         "worker_runtime/session/rendezvous_session.cc"],
        "users are shown durations by DurationText: it has no nanoseconds", False,
    ),
    r"\babsl::Now\s*\(|\bsystem_clock\b": (
        ["base/clock.cc"], "the wall clock may be set at any time; take a Clock&, or WallNow() for people", True,
    ),
    r"\b(AwaitWithTimeout|WaitWith(Timeout|Deadline)|WaitForNotificationWith(Timeout|Deadline)|(Reader)?LockWhenWith(Timeout|Deadline))\b"
    r"|(?<!clock)(?<!clock_)(?<!Real\(\))(\.|->)AwaitWithDeadline\b": (
        [], "Abseil's limits move with the wall clock; use Clock::AwaitWithDeadline", True,
    ),
}  # fmt: skip

# Folders that define what their parent declares, and so have its namespace.
DEFINED_IN = ("rendezvous/membership/transitions",)

# Headers that are named after something else than their types: what is common to their functions or aliases.
UNNAMED = (
    "base/ids.h",  # aliases of one template
    "base/settings/setting_readers.h",  # functions
    "collectives/gloo/gloo_glue.h",  # functions
    "collectives/shm/segment/segment_setup_protocol.h",  # its messages
    "rendezvous/c_api/guarded.h",  # function templates
)

SOURCE_FOLDERS = sorted({folder.split("/")[0] for folder in ALLOWED} | {"tests", "tools"})
