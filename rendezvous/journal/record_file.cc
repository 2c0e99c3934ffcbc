#include "rendezvous/journal/record_file.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

constexpr size_t kReadAtOnce = 1 << 20;

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

// A window on the file that moves forwards.
class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}

  int64_t offset() const { return offset_; }  // of what `Peek` shows

  // The next `size` bytes, or fewer at the file's end.
  absl::StatusOr<absl::string_view> Peek(size_t size) {
    while (buffer_.size() - used_ < size) {
      buffer_.erase(0, std::exchange(used_, 0));
      const size_t had = buffer_.size();
      buffer_.resize(had + std::max(size - had, kReadAtOnce));
      const ssize_t got = pread(fd_, buffer_.data() + had, buffer_.size() - had,
                                offset_ + static_cast<int64_t>(had));
      buffer_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0 && errno != EINTR) {
        return absl::InternalError(absl::StrCat("can't be read: ", strerror(errno)));
      }
      if (got == 0) break;
    }
    return absl::string_view(buffer_).substr(used_, size);
  }

  void Skip(size_t size) {
    used_ += size;
    offset_ += static_cast<int64_t>(size);
  }

 private:
  const int fd_;
  std::string buffer_;
  size_t used_ = 0;  // of buffer_
  int64_t offset_ = 0;
};

absl::Status Damaged(int64_t offset) {
  return absl::DataLossError(absl::StrCat("is damaged at byte ", offset));
}

// Whether nothing but zeros follows.
absl::StatusOr<bool> OnlyZeros(Reader reader) {
  while (true) {
    ASSIGN_OR_RETURN(const absl::string_view piece, reader.Peek(kReadAtOnce));
    if (piece.empty()) return true;
    if (piece.find_first_not_of('\0') != absl::string_view::npos) return false;
    reader.Skip(piece.size());
  }
}

// The next record's payload, valid until the reader is used again; nullopt: there is no whole one.
absl::StatusOr<std::optional<absl::string_view>> Next(Reader& reader) {
  ASSIGN_OR_RETURN(const absl::string_view header, reader.Peek(kRecordHeaderBytes));
  if (header.size() < kRecordHeaderBytes) return std::nullopt;
  const uint32_t length = GetNumber(header);
  const uint32_t checksum = GetNumber(header.substr(4));
  if (GetNumber(header.substr(8)) != Crc32c(header.substr(0, 8))) {
    ASSIGN_OR_RETURN(const bool zeros, OnlyZeros(reader));
    if (zeros) return std::nullopt;
    return Damaged(reader.offset());
  }
  ASSIGN_OR_RETURN(const absl::string_view record, reader.Peek(kRecordHeaderBytes + length));
  if (record.size() < kRecordHeaderBytes + length) return std::nullopt;
  const absl::string_view payload = record.substr(kRecordHeaderBytes);
  if (Crc32c(payload) != checksum) return Damaged(reader.offset());
  reader.Skip(record.size());
  return payload;
}

}  // namespace

std::string EncodeRecord(absl::string_view payload) {
  std::string record;
  record.reserve(kRecordHeaderBytes + payload.size());
  PutNumber(static_cast<uint32_t>(payload.size()), record);
  PutNumber(Crc32c(payload), record);
  PutNumber(Crc32c(record), record);
  record.append(payload.data(), payload.size());
  return record;
}

absl::StatusOr<int64_t> ReadRecords(int fd,
                                    const std::function<absl::Status(absl::string_view)>& visit) {
  Reader reader(fd);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<absl::string_view> payload, Next(reader));
    if (!payload.has_value()) return reader.offset();
    RETURN_IF_ERROR(visit(*payload));
  }
}

}  // namespace hvd
