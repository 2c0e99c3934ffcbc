#include "rendezvous/snapshot/fields.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "google/protobuf/descriptor.h"

namespace hvd::rendezvous::snapshot {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

constexpr int32_t kLargestNumber = 1 << 30;  // see HasNumbersInRange

bool IsInRange(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& at = *message.GetReflection();
  const bool one = index == Field::kOne;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return HasNumbersInRange(one ? at.GetMessage(message, field)
                                 : at.GetRepeatedMessage(message, field, index));
  }
  // Ids, times and numbers of commits have 64 bits: nothing indexes a vector with them.
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_INT32) return true;
  const int32_t number =
      one ? at.GetInt32(message, field) : at.GetRepeatedInt32(message, field, index);
  return number >= -kLargestNumber && number <= kLargestNumber;
}

}  // namespace

bool HasNumbersInRange(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  // Only the fields that are set. All others have their defaults, which are in range.
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!field->is_repeated()) {
      if (!IsInRange(message, field, Field::kOne)) return false;
      continue;
    }
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      if (!IsInRange(message, field, i)) return false;
    }
  }
  return true;
}

// Fields are accessed by reflection, so that each type lists its members once for both directions.
Field::Field(const Message& message, absl::string_view name)
    : field_(message.GetDescriptor()->FindFieldByName(std::string(name))) {
  if (field_ != nullptr) return;
  std::fprintf(stderr, "the message %s has no field %.*s\n",
               message.GetDescriptor()->full_name().c_str(), static_cast<int>(name.size()),
               name.data());
  std::abort();
}

bool Field::Has(const Message& message) const {
  // Reflection's HasField aborts for repeated fields.
  if (field_->is_repeated()) return SizeOf(message) > 0;
  return !field_->has_presence() || message.GetReflection()->HasField(message, field_);
}

int Field::SizeOf(const Message& message) const {
  return message.GetReflection()->FieldSize(message, field_);
}

// All numbers travel as uint64: signed ones are sign-extended here and truncated again by
// SetNumber, which restores negative values.
uint64_t Field::Number(const Message& message, int index) const {
  const Reflection& at = *message.GetReflection();
  const bool one = index == kOne;
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<uint64_t>(one ? at.GetInt32(message, field_)
                                       : at.GetRepeatedInt32(message, field_, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<uint64_t>(one ? at.GetInt64(message, field_)
                                       : at.GetRepeatedInt64(message, field_, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? at.GetUInt32(message, field_) : at.GetRepeatedUInt32(message, field_, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? at.GetBool(message, field_) : at.GetRepeatedBool(message, field_, index);
    default:
      // uint64. For any other type reflection aborts, which the first test of the message shows.
      return one ? at.GetUInt64(message, field_) : at.GetRepeatedUInt64(message, field_, index);
  }
}

std::string Field::Text(const Message& message, int index) const {
  const Reflection& at = *message.GetReflection();
  return index == kOne ? at.GetString(message, field_)
                       : at.GetRepeatedString(message, field_, index);
}

const Message& Field::Part(const Message& message, int index) const {
  const Reflection& at = *message.GetReflection();
  return index == kOne ? at.GetMessage(message, field_)
                       : at.GetRepeatedMessage(message, field_, index);
}

void Field::PutNumber(uint64_t number, Message* message) const {
  const Reflection& at = *message->GetReflection();
  const bool many = field_->is_repeated();
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? at.AddInt32(message, field_, static_cast<int32_t>(number))
                  : at.SetInt32(message, field_, static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? at.AddInt64(message, field_, static_cast<int64_t>(number))
                  : at.SetInt64(message, field_, static_cast<int64_t>(number));
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? at.AddBool(message, field_, number != 0)
                  : at.SetBool(message, field_, number != 0);
    default:
      return many ? at.AddUInt64(message, field_, number) : at.SetUInt64(message, field_, number);
  }
}

void Field::PutText(const std::string& text, Message* message) const {
  const Reflection& at = *message->GetReflection();
  field_->is_repeated() ? at.AddString(message, field_, text) : at.SetString(message, field_, text);
}

Message* Field::PutPart(Message* message) const {
  const Reflection& at = *message->GetReflection();
  // Also marks the field as set, so that a value without content is read as a value, not as none.
  return field_->is_repeated() ? at.AddMessage(message, field_)
                               : at.MutableMessage(message, field_);
}

// Saturates: the infinite ones become the extreme values, as SetNumber expects.
uint64_t ToNumber(absl::Duration value) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(value));
}

// Infinite times are at an infinite distance, in both directions of the conversion.
uint64_t ToNumber(absl::Time value) { return ToNumber(value - absl::UnixEpoch()); }

void SetNumber(uint64_t number, absl::Duration* value) {
  const auto nanoseconds = static_cast<int64_t>(number);
  *value = nanoseconds == std::numeric_limits<int64_t>::max()   ? absl::InfiniteDuration()
           : nanoseconds == std::numeric_limits<int64_t>::min() ? -absl::InfiniteDuration()
                                                                : absl::Nanoseconds(nanoseconds);
}

void SetNumber(uint64_t number, absl::Time* value) {
  absl::Duration since;
  SetNumber(number, &since);
  *value = absl::UnixEpoch() + since;
}

}  // namespace hvd::rendezvous::snapshot
