// Fuzz target: journals in files, with checksums that are right, so that what is within is read.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/version.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/batches.h"
#include "rendezvous/journal/file_journal.h"
#include "rendezvous/journal/record_file.h"
#include "rendezvous/journal/spec_codec.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::journal {
namespace {

// A header of this job, as far as the daemon compares it with its options.
std::string Header(absl::string_view bytes) {
  pb::journal::Header header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return EncodeRecord(bytes);
  }
  header.set_version(kVersion);
  header.set_job_id("job");
  *header.mutable_spec() = ToSpecMessage(policy::JobSpec());
  return EncodeRecord(header.SerializeAsString());
}

std::string File(InputParts parts) {
  const uint8_t choice = parts.Byte();
  std::string file = Header(parts.Text());
  uint64_t batch = 0;
  while (!parts.empty()) {
    if (choice % 2 == 0) {
      file += EncodeRecord(parts.Text());
    } else {
      std::string contents;
      AddToBatch(parts.Text(), contents);
      file += EncodeBatch(++batch, contents);
    }
  }
  if (choice & 2) file.resize(file.size() - std::min<size_t>(file.size(), choice >> 2));
  return file;
}

class Folder {
 public:
  Folder()
      : folder_(
            *os::PrivateFolder::Open("/dev/shm/file_journal_fuzz_" + std::to_string(getpid()))) {}
  ~Folder() { std::filesystem::remove_all(folder_->path()); }

  // The number of events of a journal, after it was opened `times` times.
  int CountEvents(const std::string& journal, int times) {
    const std::string path = folder_->PathOf("journal");
    std::ofstream(path, std::ios::binary | std::ios::trunc) << journal;
    chmod(path.c_str(), 0600);
    int events = -1;
    for (; times > 0; --times) {
      auto opened = FileJournal::Open(*folder_, "job", policy::JobSpec(), absl::UnixEpoch());
      if (!opened.ok()) return RequireOneLine(opened.status()), -1;
      events = 0;
      const absl::Status read =
          (*opened)->Replay([&](const membership::Event&, absl::Time) { ++events; });
      Require(read.ok(), "what was checked can be read");
      (*opened)->snapshot();
    }
    return events;
  }

 private:
  const std::unique_ptr<os::PrivateFolder> folder_;
};

}  // namespace
}  // namespace hvd::rendezvous::journal

// The format, the header, and events, each after its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const folder = new hvd::rendezvous::journal::Folder();
  const std::string journal = hvd::rendezvous::journal::File({data, size});
  hvd::Require(folder->CountEvents(journal, 1) == folder->CountEvents(journal, 2),
               "a journal that was opened and cut is the same");
  return 0;
}
