#include "worker_runtime/timeline/trace_format.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/timeline.pb.h"
#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {
namespace {

using pb::timeline::Chunk;
using pb::timeline::Event;

// Returns a JSON string. UTF-8 is left unchanged.
std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string Microseconds(int64_t ns) {
  // The smallest number has no absolute value among int64_t.
  const uint64_t magnitude = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return absl::StrFormat("%s%d.%03d", ns < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

// The sum of times that other processes have told: the nearest number, if it is too large.
int64_t Sum(int64_t a, int64_t b) {
  using Limits = std::numeric_limits<int64_t>;
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? Limits::max() : Limits::min();
}

bool IsNumber(int64_t number, int64_t count) { return number >= 0 && number < count; }

// Two threads of each have a number that is an int.
constexpr int64_t kMostProcessSets = 1 << 30;

// Checks all that the formatter relies on, since chunks come from other processes: enumerators
// exist, and indices of texts are in range.
bool IsSane(const Chunk& chunk) {
  for (const Event& event : chunk.events()) {
    const auto texts = static_cast<int64_t>(chunk.texts_size());
    const bool needs_name = event.kind() == static_cast<int>(EventKind::kActivity);
    const bool needs_tensor = event.kind() == static_cast<int>(EventKind::kQueued);
    if (!IsNumber(event.kind(), kEventKindCount) ||
        !IsNumber(event.op(), negotiation::kOpKindCount) ||
        !IsNumber(event.type(), collectives::kDataTypeCount) ||
        !IsNumber(event.reduction(), negotiation::kReductionCount) ||
        !IsNumber(event.process_set(), kMostProcessSets) ||
        (needs_name && event.activity() >= texts) || (needs_tensor && event.names_size() == 0)) {
      return false;
    }
    const bool named = std::all_of(event.names().begin(), event.names().end(),
                                   [&](uint32_t name) { return name < texts; });
    if (!named) return false;
  }
  return true;
}

// Returns e.g. "ALLREDUCE".
std::string OperationName(const Event& event) {
  return absl::AsciiStrToUpper(negotiation::NameOf(static_cast<negotiation::OpKind>(event.op())));
}

// Returns one event. `args` is the contents of its "args" object, as JSON; empty: none.
std::string Line(absl::string_view phase, absl::string_view name, int rank, int thread,
                 absl::string_view rest, absl::string_view args) {
  std::string line = absl::StrCat(",\n{\"ph\":\"", phase, "\",\"name\":", Quoted(name),
                                  ",\"pid\":", rank, ",\"tid\":", thread, rest);
  if (!args.empty()) absl::StrAppend(&line, ",\"args\":{", args, "}");
  return line + "}";
}

// Thread ids start at 1, because Perfetto treats thread 0 as the idle thread.
int WaitingThread(int process_set) { return 2 * process_set + 1; }
int RunningThread(int process_set) { return 2 * process_set + 2; }

std::string ThreadNames(int rank, int process_set) {
  const std::string note = process_set == 0 ? "" : absl::StrCat(" of process set ", process_set);
  auto name = [&](int thread, absl::string_view text) {
    return Line("M", "thread_name", rank, thread, "",
                absl::StrCat("\"name\":", Quoted(absl::StrCat(text, note)))) +
           Line("M", "thread_sort_index", rank, thread, "",
                absl::StrCat("\"sort_index\":", thread));
  };
  return name(WaitingThread(process_set), "queue") + name(RunningThread(process_set), "operations");
}

}  // namespace

// The events of one chunk.
class TraceFormat::Writer {
 public:
  Writer(TraceFormat& format, int rank, const Chunk& chunk)
      : format_(format),
        rank_(rank),
        chunk_(chunk),
        shift_(Sum(chunk.clock_offset_ns(), -absl::ToUnixNanos(format.origin_))) {}

  // A rank's first chunk also introduces the rank, and the first event of a process set names its
  // threads.
  std::string Write() {
    if (!format_.heard_[rank_]) Introduce();
    for (const Event& event : chunk_.events()) {
      if (format_.threads_.insert({rank_, event.process_set()}).second) {
        text_ += ThreadNames(rank_, event.process_set());
      }
      Add(event);
    }
    if (chunk_.dropped() > 0) text_ += format_.Note(rank_, "EVENTS_DROPPED", chunk_.dropped());
    return std::move(text_);
  }

 private:
  void Introduce() {
    format_.heard_[rank_] = true;
    const int64_t uncertainty = chunk_.clock_uncertainty_ns();
    const std::string known = uncertainty < 0 ? "null" : Microseconds(uncertainty);
    const int64_t now =
        chunk_.events().empty() ? format_.last_ns_ : Sum(chunk_.events(0).begin_ns(), shift_);
    text_ += Line("i", "TIMELINE_START", rank_, RunningThread(0), Times(now, "\"s\":\"p\""),
                  absl::StrCat("\"clock_offset_us\":", Microseconds(chunk_.clock_offset_ns()),
                               ",\"clock_uncertainty_us\":", known));
    const std::string label =
        uncertainty < 0 ? "clock offset unknown" : absl::StrCat("clock +-", known, " us");
    text_ += Line("M", "process_labels", rank_, 0, "", absl::StrCat("\"labels\":", Quoted(label)));
  }

  static std::string Times(int64_t ns, absl::string_view more) {
    return absl::StrCat(",\"ts\":", Microseconds(ns), ",", more);
  }

  void Add(const Event& event) {
    const int64_t begin = Sum(event.begin_ns(), shift_);
    format_.last_ns_ = std::max(format_.last_ns_, begin);
    const int waiting = WaitingThread(event.process_set());
    const int running = RunningThread(event.process_set());
    const std::string id =
        absl::StrFormat("\"cat\":\"queue\",\"id2\":{\"local\":\"0x%x\"}", event.id());
    const std::string length =
        absl::StrCat("\"dur\":", Microseconds(event.duration_ns()), ",\"cat\":");
    // Waits of tensors overlap in any order: they are asynchronous events ("b", "e"), which an id
    // pairs. Operations and their activities nest: complete events ("X"), with a duration.
    switch (static_cast<EventKind>(event.kind())) {
      case EventKind::kQueued:
        text_ += Line("b", "NEGOTIATE_" + OperationName(event), rank_, waiting, Times(begin, id),
                      TensorArgs(event));
        break;
      case EventKind::kPlanned:
        text_ +=
            Line("e", "NEGOTIATE_" + OperationName(event), rank_, waiting, Times(begin, id), "");
        break;
      case EventKind::kOperation:
        text_ += Line("X", OperationName(event), rank_, running,
                      Times(begin, length + "\"operation\""), BatchArgs(event));
        break;
      case EventKind::kActivity:
        text_ += Line("X", chunk_.texts(static_cast<int>(event.activity())), rank_, running,
                      Times(begin, length + "\"activity\""), "");
        break;
      case EventKind::kCycle:
        text_ += Line("i", "CYCLE_START", rank_, running, Times(begin, "\"s\":\"t\""), "");
        break;
    }
  }

  std::string TensorArgs(const Event& event) const {
    std::vector<int64_t> shape(event.shape().begin(), event.shape().end());
    return absl::StrCat(
        "\"tensor\":", Quoted(chunk_.texts(static_cast<int>(event.names(0)))), ",\"dtype\":",
        Quoted(collectives::NameOf(static_cast<collectives::DataType>(event.type()))),
        ",\"shape\":", Quoted(negotiation::ShapeText(shape)));
  }

  std::string BatchArgs(const Event& event) const {
    std::string args = absl::StrCat(
        "\"tensors\":", event.tensor_count(), ",\"bytes\":", event.bytes(), ",\"dtype\":",
        Quoted(collectives::NameOf(static_cast<collectives::DataType>(event.type()))));
    if (event.op() == static_cast<int>(negotiation::OpKind::kAllReduce)) {
      absl::StrAppend(
          &args, ",\"reduction\":",
          Quoted(negotiation::NameOf(static_cast<negotiation::Reduction>(event.reduction()))));
    }
    absl::StrAppend(&args, ",\"names\":[");
    for (int i = 0; i < event.names_size(); ++i) {
      absl::StrAppend(&args, i > 0 ? "," : "",
                      Quoted(chunk_.texts(static_cast<int>(event.names(i)))));
    }
    return args + "]";
  }

  TraceFormat& format_;
  const int rank_;
  const Chunk& chunk_;
  const int64_t shift_;  // added to times of the rank's clock, gives times of the trace
  std::string text_;
};

std::string TraceFormat::Begin() {
  std::string text =
      "[\n{\"ph\":\"M\",\"name\":\"trace_format\",\"pid\":0,\"tid\":0,\"args\":{\"version\":1}}";
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const int rank = static_cast<int>(i);
    const std::string name = absl::StrCat("rank ", rank, " (", hosts_[i], ")");
    std::string args = absl::StrCat("\"name\":", Quoted(name));
    if (rank == 0) {  // as in Horovod's traces, for tools that need the time of day
      absl::StrAppend(&args, ",\"start_time_since_epoch_in_micros\":", absl::ToUnixMicros(origin_));
    }
    text += Line("M", "process_name", rank, 0, "", args);
    text += Line("M", "process_sort_index", rank, 0, "", absl::StrCat("\"sort_index\":", rank));
  }
  return text;
}

absl::StatusOr<std::string> TraceFormat::Add(int rank, absl::string_view bytes) {
  Chunk chunk;
  if (!IsNumber(rank, static_cast<int64_t>(hosts_.size())) ||
      !chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !IsSane(chunk)) {
    return absl::InvalidArgumentError("not a chunk of a timeline");
  }
  return Writer(*this, rank, chunk).Write();
}

std::string TraceFormat::Note(int rank, absl::string_view name, uint64_t count) {
  return Line("i", name, rank, RunningThread(0),
              absl::StrCat(",\"ts\":", Microseconds(last_ns_), ",\"s\":\"p\""),
              absl::StrCat("\"count\":", count));
}

}  // namespace hvd::worker_runtime::timeline
