// Test helpers for timelines: signatures, a reader of traces.
#ifndef WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_
#define WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

inline negotiation::SignaturePtr TensorOf(
    std::string name, std::vector<int64_t> shape = {2, 3},
    negotiation::OpKind op = negotiation::OpKind::kAllReduce) {
  negotiation::TensorSignature signature;
  signature.name = std::move(name);
  signature.shape = std::move(shape);
  signature.op = op;
  return std::make_shared<const negotiation::TensorSignature>(std::move(signature));
}

// Reads the subset of JSON that traces use.
class TraceReader {
 public:
  using Event = std::map<std::string, std::string>;

  explicit TraceReader(const std::string& json) : json_(json) {}

  // Returns false if the text is not an array of objects, or is followed by anything.
  bool Read(std::vector<Event>& events) {
    if (!Take('[')) return false;
    do {
      if (!ReadObject(events.emplace_back())) return false;
    } while (Take(','));
    return Take(']') && Peek() == 0;
  }

 private:
  char Peek() {
    while (at_ < json_.size() && (json_[at_] == ' ' || json_[at_] == '\n')) ++at_;
    return at_ < json_.size() ? json_[at_] : 0;
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool ReadObject(Event& event) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string name;
      if (!ReadString(name) || !Take(':') || !ReadValue(event[name])) return false;
    } while (Take(','));
    return Take('}');
  }
  bool ReadString(std::string& text) {
    if (!Take('"')) return false;
    for (; at_ < json_.size() && json_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(json_[at_]) < 0x20) return false;
      if (json_[at_] == '\\' && ++at_ == json_.size()) return false;
      text += json_[at_];
    }
    return Take('"');
  }
  // Reads a value; returns the contents of a string, or the source text of any other value.
  bool ReadValue(std::string& value) {
    if (Peek() == '"') return ReadString(value);
    const size_t begin = at_;
    if (!Skip()) return false;
    value = json_.substr(begin, at_ - begin);
    return true;
  }
  bool Skip() {
    std::string ignored;
    Event fields;
    if (Peek() == '"') return ReadString(ignored);
    if (Peek() == '{') return ReadObject(fields);
    if (Take('[')) {
      if (Take(']')) return true;
      do {
        if (!Skip()) return false;
      } while (Take(','));
      return Take(']');
    }
    const size_t end = json_.find_first_of(",]} \n", at_);
    if (end == std::string::npos || end == at_) return false;
    const std::string word = json_.substr(at_, end - at_);
    at_ = end;
    double number;
    return word == "null" || absl::SimpleAtod(word, &number);
  }

  const std::string& json_;
  size_t at_ = 0;
};

// Returns the events of a trace, each with its fields as source text. Empty: the trace is not
// valid.
inline std::vector<TraceReader::Event> ParseTrace(const std::string& json) {
  std::vector<TraceReader::Event> events;
  if (!TraceReader(json).Read(events)) events.clear();
  return events;
}

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TIMELINE_TEST_UTIL_H_
