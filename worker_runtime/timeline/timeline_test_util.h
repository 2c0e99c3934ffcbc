// What tests of timelines share.
#ifndef WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_
#define WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "worker_runtime/timeline/event.h"

namespace hvd {

// Stands still until it is moved. Not thread-safe; nobody waits on it.
class StandingClock : public Clock {
 public:
  explicit StandingClock(absl::Time now) : now_(now) {}
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition& condition, absl::Time) override {
    return condition.Eval();
  }
  void Advance(absl::Duration duration) { now_ += duration; }

 private:
  absl::Time now_;
};

inline SignaturePtr TensorOf(std::string name, std::vector<int64_t> shape = {2, 3},
                             OpKind op = OpKind::kAllReduce) {
  TensorSignature signature;
  signature.name = std::move(name);
  signature.shape = std::move(shape);
  signature.op = op;
  return std::make_shared<const TensorSignature>(std::move(signature));
}

// A trace's events, each with its fields as text: numbers as they are, objects as JSON. Fails the
// parsing with an empty list.
inline std::vector<std::map<std::string, std::string>> ParseTrace(const std::string& json) {
  google::protobuf::ListValue list;
  if (!google::protobuf::util::JsonStringToMessage(json, &list).ok()) return {};
  std::vector<std::map<std::string, std::string>> events;
  for (const auto& value : list.values()) {
    auto& event = events.emplace_back();
    for (const auto& [name, field] : value.struct_value().fields()) {
      std::string text = field.string_value();
      if (text.empty()) {
        if (!google::protobuf::util::MessageToJsonString(field, &text).ok()) return {};
      }
      event[name] = text;
    }
  }
  return events;
}

}  // namespace hvd

#endif  // WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_
