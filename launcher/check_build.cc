#include "launcher/check_build.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "base/os/process.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/version.h"

namespace hvd::launcher {
namespace {

// Loading libhvd.so and its libraries from a cold network file system takes seconds.
constexpr absl::Duration kPythonTime = absl::Seconds(20);

// Looks for modules without importing them: tensorflow alone would take seconds, and a broken
// module must not end the report. First removes the working directory, which -c puts in front:
// another user may have put a json.py there, in a folder that all users may write to. (The option
// -P is of Python 3.11; with it there is no such entry.) Prints: a line with the interpreter; a
// line for each installed module of the list with its version ("?" if unknown); an empty line; the
// version of NCCL, from an installed library or from torch; the backend that Keras 3 would use. A
// distribution's name may differ from its module's.
constexpr char kQuestion[] = R"(
import sys
sys.path[:1] = filter(None, sys.path[:1])
import importlib.metadata, importlib.util, json, os
print(sys.executable)
NAMES = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")}
for module in ("horovod", "tensorflow", "keras", "torch", "jax", "mxnet", "numpy"):
    if importlib.util.find_spec(module) is None:
        continue
    version = "?"
    for name in NAMES.get(module, (module,)):
        try:
            version = importlib.metadata.version(name)
            break
        except importlib.metadata.PackageNotFoundError:
            pass
    print(module, version)
print()
nccl = ""
try:
    from horovod import _ffi
    code = _ffi.built("nccl")
    if code:
        nccl = "{}.{}.{}".format(code // 10000, code // 100 % 100, code % 100)
    elif _ffi.built("cuda"):  # torch brings one along, and loads it when it is imported
        versions = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        nccl = next((v for name, v in versions.items() if str(name).startswith("nvidia-nccl")), "")
except Exception:
    pass
print(nccl)
backend = os.environ.get("KERAS_BACKEND")
if not backend:
    try:
        home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
        with open(os.path.join(home, "keras.json")) as file:
            backend = json.load(file)["backend"]
    except Exception:
        pass
print(backend or "tensorflow")
)";

// Reads everything that `process` writes until it closes `output`.
absl::StatusOr<std::string> ReadAnswer(os::Process& process, Fd output) {
  // A loop, since a plain read could not be given up at the time limit.
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::string answer;
  bool complete = false;
  RETURN_IF_ERROR(loop->Watch(output.get(), EPOLLIN, [&](uint32_t) {
    char buffer[4096];
    const IoResult got = ReadSome(output.get(), buffer, sizeof buffer);
    answer.append(buffer, got.bytes);
    complete = got.end;
    if (complete) loop->Stop();
  }));
  loop->After(kPythonTime, [&loop] { loop->Stop(); });
  loop->Run();
  loop->Forget(output.get());
  if (complete) return answer;
  return absl::DeadlineExceededError(
      absl::StrCat("python3 did not answer within ", text::DurationText(kPythonTime)));
}

void AddRow(bool available, const std::string& name, const std::string& note, std::string* table) {
  absl::StrAppend(table, "    [", available ? "X" : " ", "] ", name);
  if (!note.empty()) absl::StrAppend(table, std::string(14 - name.size(), ' '), note);
  absl::StrAppend(table, "\n");
}

std::string VersionOf(const PythonFacts& python, const std::string& module) {
  const auto found = python.versions.find(module);
  return found == python.versions.end() ? "" : found->second;
}

// A framework of the table: its oldest supported version, and a note on how its tensors are
// reduced.
struct Framework {
  const char* name;
  const char* module;
  int oldest[3];
  const char* path;
};

constexpr Framework kFrameworks[] = {
    {"TensorFlow",
     "tensorflow",
     {2, 13, 0},
     "CPU tensors; those of devices are copied by TensorFlow"},
    {"Keras", "keras", {2, 13, 0}, ""},
    {"PyTorch", "torch", {0, 0, 0}, ""},
    {"JAX", "jax", {0, 4, 31}, "CPU arrays, also within jit"},
    {"MXNet", "mxnet", {1, 9, 1}, "CPU arrays"},
};

// Whether `version` is at least `oldest`. A part that is not a number counts as new enough.
bool IsNewEnough(const std::string& version, const int (&oldest)[3]) {
  int part = 0;
  for (absl::string_view text : absl::StrSplit(version, '.')) {
    int number = 0;
    // Not a number: the "0rc1" of a release candidate, or a version with a name.
    if (part == 3 || !absl::SimpleAtoi(text, &number) || number > oldest[part]) return true;
    if (number < oldest[part++]) return false;
  }
  return true;
}

struct Row {
  bool available = false;
  std::string note;
};

// The row of Keras: its backend, and whether that can be used. `place` describes the installation.
Row RowOfKeras(const std::string& place, const PythonFacts& python) {
  const bool keras3 = IsNewEnough(VersionOf(python, "keras"), {3, 0, 0});
  // Keras 2 is on TensorFlow whatever KERAS_BACKEND says.
  const std::string used = keras3 ? python.keras_backend : "tensorflow";
  bool usable = false;
  std::vector<std::string> others;
  for (const char* backend : {"tensorflow", "jax", "torch"}) {
    if (VersionOf(python, backend).empty()) continue;
    if (used == backend) {
      usable = true;
    } else if (keras3) {
      others.emplace_back(backend);
    }
  }
  const std::string choice = absl::StrJoin(others, " or ");
  if (usable) {
    return {true, absl::StrCat(place, "; on ", used,
                               others.empty() ? "" : "; KERAS_BACKEND may also be ", choice)};
  }
  const std::string remedy = !others.empty() ? "set KERAS_BACKEND to " + choice
                             : keras3        ? "install tensorflow, jax or torch"
                                             : "install tensorflow";
  return {false, absl::StrCat(place, "; can't be used on ", used, " here: ", remedy)};
}

// The missing requirement of MXNet; empty if there is none.
std::string ProblemOfMxnet(const PythonFacts& python) {
  // MXNet 1.9.1 uses numpy.bool, which numpy 1.24 has removed.
  const std::string numpy = VersionOf(python, "numpy");
  if (!numpy.empty() && !IsNewEnough(numpy, {1, 24, 0})) return "";
  return absl::StrCat("needs a numpy older than 1.24, there is ", numpy.empty() ? "none" : numpy);
}

Row RowOf(const Framework& framework, const absl::StatusOr<PythonFacts>& python) {
  if (!python.ok()) return {false, std::string(python.status().message())};
  const absl::string_view module = framework.module;
  const std::string version = VersionOf(*python, framework.module);
  if (version.empty()) return {false, absl::StrCat("no ", module, " in ", python->executable)};
  const std::string place = absl::StrCat(version, " in ", python->executable);
  // Before the search for horovod, which would not help there.
  if (!IsNewEnough(version, framework.oldest)) {
    return {false,
            absl::StrCat(place, "; needs ", absl::StrJoin(framework.oldest, "."), " or newer")};
  }
  if (VersionOf(*python, "horovod").empty()) {
    return {false, absl::StrCat(place, "; but no horovod there: install this version's wheel")};
  }
  if (module == "keras") return RowOfKeras(place, *python);
  if (module == "mxnet") {
    const std::string problem = ProblemOfMxnet(*python);
    if (!problem.empty()) return {false, absl::StrCat(place, "; ", problem)};
  }
  return {true, *framework.path == 0 ? place : absl::StrCat(place, "; ", framework.path)};
}

// The note on NCCL: its version, or why it is not used.
std::string NoteOnNccl(bool available, const absl::StatusOr<PythonFacts>& python) {
  if (available) return python->nccl_version;
  // Only PyTorch's tensors reach NCCL; those of the other frameworks are copied to the host first.
  if (python.ok() && !python->nccl_version.empty()) {
    return absl::StrCat(python->nccl_version, " is there, but only PyTorch uses it: see above");
  }
  return "no libnccl.so.2 or no CUDA driver here; GPU tensors go through host memory";
}

}  // namespace

absl::StatusOr<PythonFacts> AskPython() {
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  os::SpawnOptions options;
  options.file = "python3";
  options.argv = {"python3", "-c", kQuestion};
  options.stdout_fd = output.write.get();
  ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
  // Otherwise the stream would never end: this process would still hold the pipe.
  output.write.reset();
  ASSIGN_OR_RETURN(std::string answer, ReadAnswer(process, std::move(output.read)));
  // Its stdout is closed, so the answer is complete; the interpreter's exit need not be awaited.
  process.Signal(SIGKILL);
  const std::vector<std::string> lines = absl::StrSplit(answer, '\n');
  PythonFacts facts{lines[0], {}};
  size_t line = 1;
  for (; line < lines.size() && !lines[line].empty(); ++line) {
    facts.versions.insert(absl::StrSplit(lines[line], absl::MaxSplits(' ', 1)));
  }
  // An interpreter that failed half-way has printed fewer lines.
  if (line + 3 >= lines.size()) {
    return absl::InternalError("python3 does not work; see its message above");
  }
  facts.nccl_version = lines[line + 1];
  facts.keras_backend = lines[line + 2];
  return facts;
}

std::string CheckBuildTable(const absl::StatusOr<PythonFacts>& python) {
  std::string table = absl::StrCat("Horovod v", kVersion, ":\n\nAvailable Frameworks:\n");
  bool torch = false;
  for (const Framework& framework : kFrameworks) {
    const Row row = RowOf(framework, python);
    AddRow(row.available, framework.name, row.note, &table);
    if (framework.module == absl::string_view("torch")) torch = row.available;
  }
  // A horovodrun of one environment with the python3 of another is the usual mistake.
  if (python.ok()) {
    absl::StrAppend(&table, "    (asked: ", python->executable,
                    ", the first python3 on the PATH)\n");
  }
  absl::StrAppend(&table, "\nAvailable Controllers:\n");
  AddRow(false, "MPI", "not part of this version; TCP does its work", &table);
  AddRow(true, "Gloo", "", &table);
  absl::StrAppend(&table, "\nAvailable Tensor Operations:\n");
  const bool nccl = torch && !python->nccl_version.empty();
  AddRow(nccl, "NCCL", NoteOnNccl(nccl, python), &table);
  AddRow(false, "DDL", "not part of this version", &table);
  AddRow(false, "CCL", "not part of this version", &table);
  AddRow(false, "MPI", "not part of this version; TCP does its work", &table);
  AddRow(true, "Gloo", "", &table);
  return table;
}

}  // namespace hvd::launcher
