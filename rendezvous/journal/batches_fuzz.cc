// Fuzz target: batches of a journal, as they are, and valid ones that were damaged.
#include <vector>

#include "rendezvous/journal/batches.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::journal {
namespace {

std::vector<std::string> ReadAll(absl::string_view bytes) {
  std::vector<std::string> payloads;
  const auto read = ReadBatches(bytes, 0, [&](absl::string_view payload) {
    payloads.emplace_back(payload);
    return absl::OkStatus();
  });
  if (!read.ok()) RequireOneLine(read.status());
  Require(!read.ok() || read->end <= bytes.size(), "the end is within the file");
  return payloads;
}

// Whatever happens to a file, no payload is read that was not written.
void CheckDamaged(InputParts parts) {
  std::vector<std::string> written;
  std::string file;
  for (int batches = parts.Byte() % 4; batches > 0; --batches) {
    std::string contents;
    for (int payloads = 1 + parts.Byte() % 4; payloads > 0; --payloads) {
      written.emplace_back(parts.Text());
      AddToBatch(written.back(), contents);
    }
    file += EncodeBatch(static_cast<uint64_t>(4 - batches), contents);
  }
  if (file.empty()) return;
  file[parts.Number(2) % file.size()] ^= static_cast<char>(parts.Byte());
  file.resize(file.size() - parts.Number(2) % file.size());
  const std::vector<std::string> read = ReadAll(file);
  Require(read.size() <= written.size(), "there are no more payloads");
  Require(std::equal(read.begin(), read.end(), written.begin()), "a payload is what was written");
}

// What was written can be read, byte by byte.
void CheckWhole(absl::string_view payload) {
  std::string contents;
  AddToBatch(payload, contents);
  const std::string file = EncodeBatch(1, contents);
  Require(ReadAll(file) == std::vector<std::string>{std::string(payload)}, "it can be read");
}

}  // namespace
}  // namespace hvd::rendezvous::journal

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes = hvd::AsText(data, size);
  hvd::rendezvous::journal::ReadAll(bytes);
  hvd::rendezvous::journal::CheckWhole(bytes);
  hvd::rendezvous::journal::CheckDamaged(hvd::InputParts(data, size));
  return 0;
}
