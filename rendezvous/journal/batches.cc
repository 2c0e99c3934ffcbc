#include "rendezvous/journal/batches.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::journal {
namespace {

constexpr unsigned char kDigitMark = 0xC0;
constexpr int kDigitBits = 6;
constexpr size_t kLongDigits = 11;  // digits of a 64-bit number
constexpr size_t kShortDigits = 6;  // digits of a 32-bit number
constexpr size_t kSealedBytes = kLongDigits + 2 * kShortDigits;
static_assert(kSealedBytes + kShortDigits == kBatchHeaderBytes, "");
constexpr size_t kLongestRun = 254;  // the most bytes that one code byte covers
constexpr size_t kLengthBytes = 4;

void PutDigits(uint64_t number, size_t digits, std::string& to) {
  for (size_t i = 0; i < digits; ++i) {
    // The mark makes every digit non-zero, so that the header, too, contains no zero.
    to.push_back(static_cast<char>(kDigitMark | (number & (0xFF ^ kDigitMark))));
    number >>= kDigitBits;
  }
}

uint64_t GetDigits(absl::string_view from, size_t digits) {
  uint64_t number = 0;
  for (size_t i = digits; i-- > 0;) {
    number = (number << kDigitBits) | (static_cast<unsigned char>(from[i]) & (0xFF ^ kDigitMark));
  }
  return number;
}

bool IsDigit(char c) { return (static_cast<unsigned char>(c) & kDigitMark) == kDigitMark; }

// Consistent overhead byte stuffing (Cheshire and Baker, 1999): each code byte n in 1..254 stands
// for n - 1 non-zero bytes and a zero, 255 for 254 non-zero bytes without a zero. A final zero is
// implied. The overhead is one byte per 254.
std::string WithoutZeros(absl::string_view from) {
  std::string to;
  to.reserve(from.size() + from.size() / kLongestRun + 2);
  while (true) {
    const absl::string_view ahead = from.substr(0, kLongestRun);
    const size_t run = std::min(ahead.find('\0'), ahead.size());
    to.push_back(static_cast<char>(run + 1));
    to.append(from.data(), run);
    from.remove_prefix(run);
    // No zero was consumed: a full run stands for its bytes alone.
    if (run == kLongestRun) continue;
    if (from.empty()) return to;
    from.remove_prefix(1);  // the zero
  }
}

// The inverse of WithoutZeros. Returns nullopt if `from` is not a result of that.
std::optional<std::string> WithZeros(absl::string_view from) {
  std::string to;
  to.reserve(from.size());
  while (!from.empty()) {
    const size_t run = static_cast<unsigned char>(from[0]) - size_t{1};
    if (run > kLongestRun || from.size() - 1 < run) return std::nullopt;
    to.append(from.data() + 1, run);
    if (run < kLongestRun) to.push_back('\0');
    from.remove_prefix(run + 1);
  }
  if (to.empty() || to.back() != '\0') return std::nullopt;
  to.pop_back();  // the zero after the last run is not part of the data
  return to;
}

struct Header {
  uint64_t number = 0;
  size_t length = 0;
  uint32_t checksum = 0;
};

// Parses the header at the start of `bytes`. Returns nullopt if it is incomplete or damaged.
std::optional<Header> FirstHeader(absl::string_view bytes) {
  const absl::string_view all = bytes.substr(0, kBatchHeaderBytes);
  if (all.size() < kBatchHeaderBytes || !std::all_of(all.begin(), all.end(), IsDigit)) {
    return std::nullopt;
  }
  const absl::string_view sealed = all.substr(0, kSealedBytes);
  // The header has a checksum of its own, because the length is used before the body is checked: a
  // wrong one would make an incomplete batch of a damaged one.
  if (GetDigits(all.substr(kSealedBytes), kShortDigits) != Crc32c(sealed)) return std::nullopt;
  return Header{
      GetDigits(sealed, kLongDigits),
      static_cast<size_t>(GetDigits(sealed.substr(kLongDigits), kShortDigits)),
      static_cast<uint32_t>(GetDigits(sealed.substr(kLongDigits + kShortDigits), kShortDigits))};
}

bool HasZero(absl::string_view bytes) { return bytes.find('\0') != absl::string_view::npos; }

// Whether `bytes`, which do not start with a valid header, are an incomplete last batch: the header
// is truncated or partly zero, and no valid header with a higher number follows. A later batch
// would prove that this one had been complete on disk, so that it was damaged since.
bool IsTornHeader(absl::string_view bytes, uint64_t number) {
  const absl::string_view header = bytes.substr(0, kBatchHeaderBytes);
  const bool lost = header.size() < kBatchHeaderBytes || HasZero(header);
  if (!lost ||
      !std::all_of(header.begin(), header.end(), [](char c) { return c == '\0' || IsDigit(c); })) {
    return false;
  }
  for (size_t i = 1; i < bytes.size(); ++i) {
    const std::optional<Header> later = FirstHeader(bytes.substr(i));
    if (later.has_value() && later->number > number) return false;
  }
  return true;
}

absl::Status VisitBody(absl::string_view body,
                       const std::function<absl::Status(absl::string_view)>& visit) {
  const std::optional<std::string> contents = WithZeros(body);
  if (!contents.has_value()) return absl::DataLossError("has a malformed batch");
  absl::string_view rest = *contents;
  while (!rest.empty()) {
    if (rest.size() < kLengthBytes) return absl::DataLossError("has a malformed batch");
    size_t length = 0;
    for (size_t i = kLengthBytes; i-- > 0;) {
      length = (length << 8) | static_cast<unsigned char>(rest[i]);
    }
    rest.remove_prefix(kLengthBytes);
    if (rest.size() < length) return absl::DataLossError("has a malformed batch");
    RETURN_IF_ERROR(visit(rest.substr(0, length)));
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
}

}  // namespace

void AddToBatch(absl::string_view payload, std::string& contents) {
  for (size_t i = 0; i < kLengthBytes; ++i) {
    contents.push_back(static_cast<char>(payload.size() >> (8 * i)));
  }
  contents.append(payload.data(), payload.size());
}

std::string EncodeBatch(uint64_t number, absl::string_view contents) {
  const std::string body = WithoutZeros(contents);
  std::string batch;
  batch.reserve(kBatchHeaderBytes + body.size());
  PutDigits(number, kLongDigits, batch);
  PutDigits(body.size(), kShortDigits, batch);
  PutDigits(Crc32c(body), kShortDigits, batch);
  PutDigits(Crc32c(batch), kShortDigits, batch);
  return batch + body;
}

absl::StatusOr<BatchesRead> ReadBatches(
    absl::string_view bytes, size_t begin,
    const std::function<absl::Status(absl::string_view)>& visit) {
  BatchesRead read;
  read.end = begin;
  while (read.end < bytes.size()) {
    const absl::string_view rest = bytes.substr(read.end);
    const absl::Status damaged = absl::DataLossError(absl::StrCat("is damaged at byte ", read.end));
    const std::optional<Header> header = FirstHeader(rest);
    if (!header.has_value()) {
      if (IsTornHeader(rest, read.next)) return read;
      return damaged;
    }
    // A valid header with another number is no torn write: a batch before it has disappeared, or
    // the bytes are those of another file.
    if (header->number != read.next) return damaged;
    const absl::string_view body = rest.substr(kBatchHeaderBytes, header->length);
    // The file ends within the body, so this batch is the last one, and its write was interrupted.
    if (body.size() < header->length) return read;
    const size_t size = kBatchHeaderBytes + body.size();
    if (Crc32c(body) != header->checksum) {
      // Zeros in the last batch mean that a power cut lost sectors before the write was synced. Any
      // other mismatch is damage.
      if (size == rest.size() && HasZero(body)) return read;
      return damaged;
    }
    RETURN_IF_ERROR(VisitBody(body, visit));
    read.end += size;
    ++read.next;
  }
  return read;
}

}  // namespace hvd::rendezvous::journal
