#include "rendezvous/journal/record_file.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::journal {
namespace {

void PutNumber(uint32_t number, std::string& to) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<char>(number >> shift));
}

uint32_t GetNumber(absl::string_view from) {
  uint32_t number = 0;
  for (int i = 3; i >= 0; --i) {
    number = (number << 8) | static_cast<unsigned char>(from[static_cast<size_t>(i)]);
  }
  return number;
}

absl::Status Damaged() { return absl::DataLossError("is damaged at byte 0"); }

}  // namespace

std::string EncodeRecord(absl::string_view payload) {
  std::string record;
  record.reserve(kRecordHeaderBytes + payload.size());
  PutNumber(static_cast<uint32_t>(payload.size()), record);
  PutNumber(Crc32c(payload), record);
  // A checksum of the length and the first checksum, so that a wrong length is not taken for a
  // record that was cut off.
  PutNumber(Crc32c(record), record);
  record.append(payload.data(), payload.size());
  return record;
}

absl::StatusOr<std::optional<absl::string_view>> FirstRecord(absl::string_view bytes) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const uint32_t length = GetNumber(bytes);
  const uint32_t checksum = GetNumber(bytes.substr(4));
  if (GetNumber(bytes.substr(8)) != Crc32c(bytes.substr(0, 8))) {
    // A file that was extended before its data was written, as after a power cut.
    if (bytes.find_first_not_of('\0') == absl::string_view::npos) return std::nullopt;
    return Damaged();
  }
  const absl::string_view payload = bytes.substr(kRecordHeaderBytes, length);
  if (payload.size() < length) return std::nullopt;
  if (Crc32c(payload) != checksum) return Damaged();
  return payload;
}

absl::StatusOr<size_t> ReadRecords(absl::string_view bytes, size_t begin,
                                   const std::function<absl::Status(absl::string_view)>& visit) {
  size_t read = begin;
  while (true) {
    const auto payload = FirstRecord(bytes.substr(read));
    if (!payload.ok()) return absl::DataLossError(absl::StrCat("is damaged at byte ", read));
    if (!payload->has_value()) return read;
    RETURN_IF_ERROR(visit(**payload));
    read += kRecordHeaderBytes + (*payload)->size();
  }
}

}  // namespace hvd::rendezvous::journal
