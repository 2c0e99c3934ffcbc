#include "launcher/check_build.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/event_loop.h"
#include "base/os/process.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/version.h"

namespace hvd::launcher {
namespace {

constexpr absl::Duration kPythonTime = absl::Seconds(20);

// Prints a line for the interpreter and one for each package: its version, "?" if it names none, or
// nothing. The last line is the version of NCCL, of an installed library or the one of torch.
constexpr char kQuestion[] = R"(
import importlib.metadata, importlib.util, sys
print(sys.executable)
for name in ("torch", "horovod"):
    version = ""
    if importlib.util.find_spec(name) is not None:
        version = "?"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    print(version)
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
)";

// Everything that `process` writes until it closes `output`.
absl::StatusOr<std::string> ReadAnswer(os::Process& process, Fd output) {
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

std::string TorchNote(const absl::StatusOr<PythonFacts>& python) {
  if (!python.ok()) return std::string(python.status().message());
  if (python->torch_version.empty()) return absl::StrCat("no torch in ", python->executable);
  std::string note = absl::StrCat(python->torch_version, " in ", python->executable);
  if (python->horovod_version.empty()) {
    absl::StrAppend(&note, "; but no horovod there: install this version's wheel");
  }
  return note;
}

}  // namespace

absl::StatusOr<PythonFacts> AskPython() {
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  os::SpawnOptions options;
  options.file = "python3";
  options.argv = {"python3", "-c", kQuestion};
  options.stdout_fd = output.write.get();
  ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
  output.write.reset();
  ASSIGN_OR_RETURN(std::string answer, ReadAnswer(process, std::move(output.read)));
  process.Signal(SIGKILL);  // It has closed its stdout, so its output is complete.
  const std::vector<std::string> lines = absl::StrSplit(answer, '\n');
  if (lines.size() < 5) return absl::InternalError("python3 does not work; see its message above");
  return PythonFacts{lines[0], lines[1], lines[2], lines[3]};
}

std::string CheckBuildTable(const absl::StatusOr<PythonFacts>& python) {
  const bool torch =
      python.ok() && !python->torch_version.empty() && !python->horovod_version.empty();
  std::string table = absl::StrCat("Horovod v", kVersion, ":\n\nAvailable Frameworks:\n");
  AddRow(false, "TensorFlow", "not part of this version", &table);
  AddRow(torch, "PyTorch", TorchNote(python), &table);
  AddRow(false, "MXNet", "not part of this version", &table);
  absl::StrAppend(&table, "\nAvailable Controllers:\n");
  AddRow(false, "MPI", "not part of this version; Gloo does its work", &table);
  AddRow(true, "Gloo", "", &table);
  absl::StrAppend(&table, "\nAvailable Tensor Operations:\n");
  const bool nccl = torch && !python->nccl_version.empty();
  AddRow(nccl, "NCCL",
         nccl ? python->nccl_version
              : "no libnccl.so.2 or no CUDA driver here; GPU tensors go through host memory",
         &table);
  AddRow(false, "DDL", "not part of this version", &table);
  AddRow(false, "CCL", "not part of this version", &table);
  AddRow(false, "MPI", "not part of this version; Gloo does its work", &table);
  AddRow(true, "Gloo", "", &table);
  return table;
}

}  // namespace hvd::launcher
