// Mutations of messages, for tests: each differs from the valid message in one field.
#ifndef RENDEZVOUS_SNAPSHOT_MUTATIONS_TEST_UTIL_H_
#define RENDEZVOUS_SNAPSHOT_MUTATIONS_TEST_UTIL_H_

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace hvd::rendezvous::snapshot {

// Applies each mutation to `whole`, or to a message in it, and reverts it: a number becomes 0, 1,
// -1 or its maximum; a string becomes empty; a message or all items of a repeated field are
// removed; a repeated message gets an empty item.
class Mutations {
 public:
  // Called after each change; `what` names it.
  using Visit = std::function<void(const std::string& what)>;

  explicit Mutations(Visit visit) : visit_(std::move(visit)) {}

  void Of(google::protobuf::Message* whole) { Go(whole, ""); }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  template <typename Change>
  void Try(Message* message, const std::string& what, Change change) {
    const std::string before = message->SerializeAsString();
    change(*message->GetReflection());
    visit_(what);
    message->ParseFromString(before);
  }

  void Go(Message* message, const std::string& path) {
    const google::protobuf::Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const Field* field = type.field(i);
      const std::string name = absl::StrCat(path, "/", field->name());
      if (field->is_repeated()) {
        Items(message, field, name);
      } else if (field->message_type() == nullptr) {
        Scalar(message, field, name);
      } else if (message->GetReflection()->HasField(*message, field)) {
        Try(message, name + " gone", [&](const auto& r) { r.ClearField(message, field); });
        Go(message->GetReflection()->MutableMessage(message, field), name);
      }
    }
  }

  void Items(Message* message, const Field* field, const std::string& name) {
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    Try(message, name + " emptied", [&](const auto& r) { r.ClearField(message, field); });
    if (field->message_type() == nullptr) return;
    Try(message, name + " and one more", [&](const auto& r) { r.AddMessage(message, field); });
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      Go(reflection.MutableRepeatedMessage(message, field, i), absl::StrCat(name, "/", i));
    }
  }

  template <typename T>
  void Numbers(Message* message, const Field* field, const std::string& name,
               void (google::protobuf::Reflection::*set)(Message*, const Field*, T) const) {
    for (const T value : {T{0}, T{1}, static_cast<T>(-1), std::numeric_limits<T>::max()}) {
      Try(message, absl::StrCat(name, " = ", value),
          [&](const auto& r) { (r.*set)(message, field, value); });
    }
  }

  void Scalar(Message* message, const Field* field, const std::string& name) {
    using R = google::protobuf::Reflection;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return Numbers(message, field, name, &R::SetInt32);
      case Field::CPPTYPE_INT64:
        return Numbers(message, field, name, &R::SetInt64);
      case Field::CPPTYPE_UINT32:
        return Numbers(message, field, name, &R::SetUInt32);
      case Field::CPPTYPE_UINT64:
        return Numbers(message, field, name, &R::SetUInt64);
      case Field::CPPTYPE_BOOL:
        return Numbers(message, field, name, &R::SetBool);
      default:
        return Try(message, name + " empty", [&](const R& r) { r.SetString(message, field, ""); });
    }
  }

  const Visit visit_;
};

}  // namespace hvd::rendezvous::snapshot

#endif  // RENDEZVOUS_SNAPSHOT_MUTATIONS_TEST_UTIL_H_
