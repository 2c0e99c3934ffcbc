// Fuzz target: files of records, as they are, and valid ones that were damaged.
#include <vector>

#include "rendezvous/journal/record_file.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::journal {
namespace {

std::vector<std::string> ReadAll(absl::string_view bytes) {
  std::vector<std::string> payloads;
  const auto end = ReadRecords(bytes, 0, [&](absl::string_view payload) {
    payloads.emplace_back(payload);
    return absl::OkStatus();
  });
  if (!end.ok()) RequireOneLine(end.status());
  Require(!end.ok() || *end <= bytes.size(), "the end is within the file");
  return payloads;
}

// Whatever happens to a file, no record is read that was not written.
void CheckDamaged(InputParts parts) {
  std::vector<std::string> written;
  std::string file;
  for (int records = parts.Byte() % 8; records > 0; --records) {
    written.emplace_back(parts.Text());
    file += EncodeRecord(written.back());
  }
  Require(ReadAll(file) == written, "what was written can be read");
  if (file.empty()) return;
  file[parts.Number(2) % file.size()] ^= static_cast<char>(parts.Byte());
  file.resize(file.size() - parts.Number(2) % file.size());
  const std::vector<std::string> read = ReadAll(file);
  Require(read.size() <= written.size(), "there are no more records");
  Require(std::equal(read.begin(), read.end(), written.begin()), "a record is what was written");
}

}  // namespace
}  // namespace hvd::rendezvous::journal

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::rendezvous::journal::ReadAll(hvd::AsText(data, size));
  hvd::rendezvous::journal::CheckDamaged(hvd::InputParts(data, size));
  return 0;
}
