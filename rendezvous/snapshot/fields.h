// Serialization of C++ values to Protobuf messages and back. Each type has one function Keep, used
// for both directions, that maps the fields of its message to its members:
//   struct Host {
//     std::string name;
//     absl::Duration grace;
//     template <typename Fields>
//     void Keep(Fields& fields) {
//       auto& [name, grace] = *this;  // a member that is added does not compile before it is kept
//       fields("name", name, "grace_ns", grace);
//     }
//   };
// A type that must not depend on this header has a free function KeepFields(fields, value) instead.
// Pure.
//
// Times and durations are stored as whole nanoseconds; the infinite ones as the extreme values of
// int64. A map is a repeated message with `key` and `value`, a pair a message with `first` and
// `second`. If the message lacks a field with presence, its member is unchanged, so that fields can
// be added later.
#ifndef RENDEZVOUS_SNAPSHOT_FIELDS_H_
#define RENDEZVOUS_SNAPSHOT_FIELDS_H_

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
#include "google/protobuf/message.h"

namespace hvd::rendezvous::snapshot {

// Whether all int32 numbers in `message` are within +-2^30. They are counters and indices that the
// program increments later; this bound prevents an overflow after reading a damaged message.
bool HasNumbersInRange(const google::protobuf::Message& message);

// A field of a message, looked up by name. Aborts if the message has no such field, which is a bug
// that the first use reveals.
class Field {
 public:
  Field(const google::protobuf::Message& message, absl::string_view name);

  // Whether the field is set; always true for fields without presence.
  bool Has(const google::protobuf::Message& message) const;
  int SizeOf(const google::protobuf::Message& message) const;  // if it is repeated

  // `index` is kOne unless the field is repeated.
  static constexpr int kOne = -1;
  uint64_t Number(const google::protobuf::Message& message, int index) const;
  std::string Text(const google::protobuf::Message& message, int index) const;
  const google::protobuf::Message& Part(const google::protobuf::Message& message, int index) const;

  // Set the field, or append to a repeated one.
  void PutNumber(uint64_t number, google::protobuf::Message* message) const;
  void PutText(const std::string& text, google::protobuf::Message* message) const;
  google::protobuf::Message* PutPart(google::protobuf::Message* message) const;

 private:
  const google::protobuf::FieldDescriptor* field_;
};

// Conversion of scalar types to and from uint64. Negative values are sign-extended.
template <typename T>
std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, uint64_t> ToNumber(T value) {
  return static_cast<uint64_t>(value);
}
template <typename Tag, typename T>
uint64_t ToNumber(StrongInt<Tag, T> value) {
  return static_cast<uint64_t>(value.value());
}
uint64_t ToNumber(absl::Duration value);
uint64_t ToNumber(absl::Time value);

template <typename T>
std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>> SetNumber(uint64_t number, T* value) {
  *value = static_cast<T>(number);
}
template <typename Tag, typename T>
void SetNumber(uint64_t number, StrongInt<Tag, T>* value) {
  *value = StrongInt<Tag, T>(static_cast<T>(number));
}
void SetNumber(uint64_t number, absl::Duration* value);
void SetNumber(uint64_t number, absl::Time* value);

template <typename T, typename = void>
struct IsNumber : std::false_type {};
template <typename T>
struct IsNumber<T, std::void_t<decltype(ToNumber(std::declval<T>()))>> : std::true_type {};

template <typename T, typename Fields, typename = void>
struct KeepsItself : std::false_type {};
template <typename T, typename Fields>
struct KeepsItself<T, Fields,
                   std::void_t<decltype(std::declval<T&>().Keep(std::declval<Fields&>()))>>
    : std::true_type {};

template <typename Fields, typename First, typename Second>
void KeepFields(Fields& fields, std::pair<First, Second>& value) {
  fields("first", value.first, "second", value.second);
}
template <typename Fields>
void KeepFields(Fields& fields, absl::Status& value) {
  int code = value.raw_code();
  std::string message(value.message());
  fields("code", code, "message", message);
  value = absl::Status(static_cast<absl::StatusCode>(code), message);
}

template <typename Fields, typename T>
void KeepParts(Fields& fields, T& value) {
  if constexpr (KeepsItself<T, Fields>::value) {
    value.Keep(fields);
  } else {
    KeepFields(fields, value);
  }
}

// Writes the members of a value to a message. Not thread-safe.
class FieldWriter {
 public:
  static constexpr bool kReads = false;

  explicit FieldWriter(google::protobuf::Message* message) : message_(*message) {}

  void operator()() {}
  template <typename T, typename... Rest>
  void operator()(absl::string_view name, T& value, Rest&&... rest) {
    Put(Field(message_, name), value);
    (*this)(std::forward<Rest>(rest)...);
  }

 private:
  template <typename T>
  void Put(const Field& field, T& value) {
    if constexpr (IsNumber<T>::value) {
      field.PutNumber(ToNumber(value), &message_);
    } else {
      FieldWriter part(field.PutPart(&message_));
      KeepParts(part, value);
    }
  }
  void Put(const Field& field, std::string& value) { field.PutText(value, &message_); }
  template <typename T>
  void Put(const Field& field, std::optional<T>& value) {
    if (value.has_value()) Put(field, *value);
  }
  template <typename T>
  void Put(const Field& field, std::shared_ptr<const T>& value) {
    if (value == nullptr) return;
    T copy = *value;
    Put(field, copy);
  }
  template <typename T, size_t kSize>
  void Put(const Field& field, std::array<T, kSize>& value) {
    for (T& each : value) Put(field, each);
  }
  template <typename T>
  void Put(const Field& field, std::vector<T>& value) {
    for (T& each : value) Put(field, each);
  }
  template <typename T>
  void Put(const Field& field, std::deque<T>& value) {
    for (T& each : value) Put(field, each);
  }
  template <typename T>
  void Put(const Field& field, std::set<T>& value) {
    for (T each : value) Put(field, each);
  }
  template <typename Key, typename T>
  void Put(const Field& field, std::map<Key, T>& value) {
    for (auto& [key, each] : value) {
      Key copy = key;
      FieldWriter entry(field.PutPart(&message_));
      entry("key", copy, "value", each);
    }
  }

  google::protobuf::Message& message_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(const google::protobuf::Message& message) : message_(message) {}

  void operator()() {}
  template <typename T, typename... Rest>
  void operator()(absl::string_view name, T& value, Rest&&... rest) {
    Get(Field(message_, name), value);
    (*this)(std::forward<Rest>(rest)...);
  }

 private:
  template <typename T>
  void Get(const Field& field, T& value) {
    if (field.Has(message_)) One(field, Field::kOne, value);
  }
  template <typename T>
  void Get(const Field& field, std::optional<T>& value) {
    value.reset();
    if (field.Has(message_)) One(field, Field::kOne, value.emplace());
  }
  // Reads a separate copy: pointers that shared a value before do not share it after.
  template <typename T>
  void Get(const Field& field, std::shared_ptr<const T>& value) {
    if (!field.Has(message_)) return;
    T read;
    Get(field, read);
    value = std::make_shared<const T>(std::move(read));
  }
  template <typename T, size_t kSize>
  void Get(const Field& field, std::array<T, kSize>& value) {
    const int size = field.SizeOf(message_);
    for (int i = 0; i < size && i < static_cast<int>(kSize); ++i) One(field, i, value[i]);
  }
  template <typename T>
  void Get(const Field& field, std::vector<T>& value) {
    All(field, value);
  }
  template <typename T>
  void Get(const Field& field, std::deque<T>& value) {
    All(field, value);
  }
  template <typename T>
  void Get(const Field& field, std::set<T>& value) {
    std::vector<T> items;
    All(field, items);
    value = std::set<T>(items.begin(), items.end());
  }
  template <typename Key, typename T>
  void Get(const Field& field, std::map<Key, T>& value) {
    value.clear();
    for (int i = 0; i < field.SizeOf(message_); ++i) {
      Key key = Key();
      T each = T();
      FieldReader entry(field.Part(message_, i));
      entry("key", key, "value", each);
      value.emplace(std::move(key), std::move(each));
    }
  }

  template <typename Container>
  void All(const Field& field, Container& value) {
    value.clear();
    for (int i = 0; i < field.SizeOf(message_); ++i) One(field, i, value.emplace_back());
  }

  template <typename T>
  void One(const Field& field, int index, T& value) {
    if constexpr (IsNumber<T>::value) {
      SetNumber(field.Number(message_, index), &value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = field.Text(message_, index);
    } else {
      FieldReader part(field.Part(message_, index));
      KeepParts(part, value);
    }
  }

  const google::protobuf::Message& message_;
};

}  // namespace hvd::rendezvous::snapshot

#endif  // RENDEZVOUS_SNAPSHOT_FIELDS_H_
