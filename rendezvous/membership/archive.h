// Values as bytes and back. A type says once what it consists of, for both ways:
//   struct Host {
//     std::string name;
//     int slots;
//     template <typename Archive>
//     void Keep(Archive& archive) {
//       auto& [name, slots] = *this;  // a member that is added does not compile before it is kept
//       archive(name, slots);
//     }
//   };
// For values that are others' alphabet it is a function KeepFields(archive, value) beside them.
// The bytes are for this version of the program and later ones: what comes to a type later is kept
// at its end, by archive.Since(LAYOUT, value), with a new number in archive_layout.h. Pure.
#ifndef RENDEZVOUS_MEMBERSHIP_ARCHIVE_H_
#define RENDEZVOUS_MEMBERSHIP_ARCHIVE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/archive_layout.h"

namespace hvd::rendezvous::membership {

template <typename T, typename Archive, typename = void>
struct KeepsItself : std::false_type {};
template <typename T, typename Archive>
struct KeepsItself<T, Archive,
                   std::void_t<decltype(std::declval<T&>().Keep(std::declval<Archive&>()))>>
    : std::true_type {};

// The types that both ways know; Derived has Number(uint64_t&), Bytes(std::string&) and `kReads`.
// Of times and durations, whole nanoseconds survive.
template <typename Derived>
class ArchiveBase {
 public:
  template <typename... Values>
  void operator()(Values&... values) {
    (One(values), ...);
  }

  // What archives have from this layout on. In those of before it is as it was made.
  template <typename... Values>
  void Since(uint32_t layout, Values&... values) {
    if (self().layout() >= layout) (One(values), ...);
  }

 protected:
  template <typename T>
  void One(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      uint64_t number = static_cast<uint64_t>(value);
      self().Number(number);
      value = static_cast<T>(number);
    } else if constexpr (KeepsItself<T, Derived>::value) {
      value.Keep(self());
    } else {
      KeepFields(self(), value);
    }
  }

  template <typename Tag, typename T>
  void One(StrongInt<Tag, T>& value) {
    T number = value.value();
    One(number);
    value = StrongInt<Tag, T>(number);
  }

  void One(std::string& value) { self().Bytes(value); }

  void One(absl::Duration& value) {
    const bool infinite = value == absl::InfiniteDuration() || value == -absl::InfiniteDuration();
    int64_t sign = infinite ? (value > absl::ZeroDuration() ? 1 : -1) : 0;
    int64_t nanoseconds = infinite ? 0 : absl::ToInt64Nanoseconds(value);
    (*this)(sign, nanoseconds);
    value = sign == 0 ? absl::Nanoseconds(nanoseconds) : absl::InfiniteDuration() * sign;
  }

  void One(absl::Time& value) {
    absl::Duration since = value - absl::UnixEpoch();
    One(since);
    value = absl::UnixEpoch() + since;
  }

  void One(absl::Status& value) {
    int code = value.raw_code();
    std::string message(value.message());
    (*this)(code, message);
    value = absl::Status(static_cast<absl::StatusCode>(code), message);
  }

  template <typename T, typename U>
  void One(std::pair<T, U>& value) {
    (*this)(value.first, value.second);
  }

  template <typename T>
  void One(std::optional<T>& value) {
    bool there = value.has_value();
    One(there);
    if (!there) return value.reset();
    if (Derived::kReads) value.emplace();
    One(*value);
  }

  // Each as a value of its own: what was shared is not so any more.
  template <typename T>
  void One(std::shared_ptr<const T>& value) {
    std::optional<T> kept;
    if (value != nullptr) kept = *value;
    One(kept);
    if (Derived::kReads) {
      value = kept.has_value() ? std::make_shared<const T>(*std::move(kept)) : nullptr;
    }
  }

  template <typename T, size_t kSize>
  void One(std::array<T, kSize>& value) {
    for (T& each : value) One(each);
  }
  template <typename T>
  void One(std::vector<T>& value) {
    Sequence(value);
  }
  template <typename T>
  void One(std::deque<T>& value) {
    Sequence(value);
  }

  // Keys are constant in their containers, so these are taken apart.
  template <typename T>
  void One(std::set<T>& value) {
    std::vector<T> items(value.begin(), value.end());
    Sequence(items);
    if (Derived::kReads) value = std::set<T>(items.begin(), items.end());
  }
  template <typename Key, typename T>
  void One(std::map<Key, T>& value) {
    std::vector<std::pair<Key, T>> items(value.begin(), value.end());
    Sequence(items);
    if (Derived::kReads) value = std::map<Key, T>(items.begin(), items.end());
  }

 private:
  template <typename Container>
  void Sequence(Container& value) {
    uint64_t size = value.size();
    One(size);
    if constexpr (Derived::kReads) {
      value.clear();
      for (uint64_t i = 0; i < size && self().ok(); ++i) One(value.emplace_back());
    } else {
      for (auto& each : value) One(each);
    }
  }

  Derived& self() { return static_cast<Derived&>(*this); }
};

// Not thread-safe, as the reader.
class ArchiveWriter : public ArchiveBase<ArchiveWriter> {
 public:
  static constexpr bool kReads = false;
  static constexpr uint32_t layout() { return kArchiveLayout; }

  void Number(uint64_t& number) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes_.push_back(static_cast<char>(number >> shift));
  }
  void Bytes(std::string& bytes) {
    uint64_t size = bytes.size();
    Number(size);
    bytes_ += bytes;
  }

  // All that was written.
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Never reads beyond the bytes: from where they are wrong, values are empty.
class ArchiveReader : public ArchiveBase<ArchiveReader> {
 public:
  static constexpr bool kReads = true;

  // `bytes`, written with this layout, must outlive it.
  explicit ArchiveReader(absl::string_view bytes, uint32_t layout = kArchiveLayout)
      : rest_(bytes), layout_(layout) {}

  uint32_t layout() const { return layout_; }

  void Number(uint64_t& number) {
    number = 0;
    if (rest_.size() < 8) return Fail();
    for (int i = 7; i >= 0; --i) {
      number = number << 8 | static_cast<unsigned char>(rest_[static_cast<size_t>(i)]);
    }
    rest_.remove_prefix(8);
  }
  void Bytes(std::string& bytes) {
    uint64_t size = 0;
    Number(size);
    bytes.clear();
    if (size > rest_.size()) return Fail();
    bytes.assign(rest_.data(), size);
    rest_.remove_prefix(size);
  }

  bool ok() const { return ok_; }
  // ... and nothing is left over.
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    rest_ = "";
  }

  absl::string_view rest_;
  const uint32_t layout_;
  bool ok_ = true;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_ARCHIVE_H_
