#include "rehearsal/campaign.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/edit_distance.h"
#include "base/text/json_reader.h"
#include "base/text/names.h"

namespace hvd::rehearsal {
namespace {

using text::JsonMember;
using text::JsonPlace;
using text::JsonValue;
using Kind = JsonValue::Kind;

constexpr double kMostSeconds = 7 * 86400;
constexpr double kMostDelayMs = 60000;
constexpr double kMostNumber = 1e15;  // whole numbers up to here are exact in a double
constexpr size_t kMostFaults = 10000;
constexpr uint64_t kParts = uint64_t{1} << 53;  // of a random interval

// Reads values, and says where one is wrong. Keeps what it is asked for, not what was read.
class Reader {
 public:
  explicit Reader(absl::string_view file) : file_(file) {}

  absl::StatusOr<Campaign> Read(const JsonValue& value) const;

 private:
  std::string At(const JsonPlace& place) const { return absl::StrCat(file_, ":", place.Text()); }
  absl::Status Wrong(const JsonPlace& place, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(At(place), ": ", text::OnOneLine(what)));
  }

  absl::Status CheckNames(const JsonValue& object,
                          const std::vector<absl::string_view>& names) const;
  absl::StatusOr<double> Number(const JsonValue& value, absl::string_view name, double least,
                                double most) const;
  absl::StatusOr<uint64_t> Whole(const JsonValue& value, absl::string_view name,
                                 double least) const;
  absl::StatusOr<std::string> Text(const JsonValue& value, absl::string_view name) const;
  // Zero if the object has no such member.
  absl::StatusOr<absl::Duration> Time(const JsonValue& object, absl::string_view name,
                                      double most) const;

  absl::StatusOr<Fault> ReadFault(const JsonValue& value, const Campaign& campaign,
                                  bool has_seed) const;
  absl::StatusOr<FaultKind> ReadKind(const JsonValue& value) const;
  absl::Status ReadTrigger(const JsonValue& fault, const Campaign& campaign, bool has_seed,
                           Fault& result) const;
  absl::Status ReadRandom(const JsonValue& value, const Campaign& campaign, Fault& result) const;
  absl::Status ReadTarget(const JsonValue& fault, const KindFacts& facts, Fault& result) const;
  absl::Status ReadTimes(const JsonValue& fault, const KindFacts& facts, Fault& result) const;

  const absl::string_view file_;
};

absl::Status Reader::CheckNames(const JsonValue& object,
                                const std::vector<absl::string_view>& names) const {
  for (const JsonMember& member : object.members) {
    if (std::find(names.begin(), names.end(), member.name) != names.end()) continue;
    return Wrong(member.place, absl::StrCat("there is no \"", member.name, "\" here, only ",
                                            absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Reader::Number(const JsonValue& value, absl::string_view name, double least,
                                      double most) const {
  if (value.kind == Kind::kNumber && value.number >= least && value.number <= most)
    return value.number;
  return Wrong(value.place,
               absl::StrCat("\"", name, "\" must be a number from ", least, " to ", most));
}

absl::StatusOr<uint64_t> Reader::Whole(const JsonValue& value, absl::string_view name,
                                       double least) const {
  const bool is_whole = value.kind == Kind::kNumber && value.number == std::floor(value.number) &&
                        value.number >= least && value.number <= kMostNumber;
  if (is_whole) return static_cast<uint64_t>(value.number);
  return Wrong(value.place,
               absl::StrCat("\"", name, "\" must be a whole number, at least ", least));
}

absl::StatusOr<std::string> Reader::Text(const JsonValue& value, absl::string_view name) const {
  if (value.kind == Kind::kString && !value.text.empty()) return value.text;
  return Wrong(value.place, absl::StrCat("\"", name, "\" must be a string"));
}

absl::StatusOr<absl::Duration> Reader::Time(const JsonValue& object, absl::string_view name,
                                            double most) const {
  const JsonValue* const value = object.Find(name);
  if (value == nullptr) return absl::ZeroDuration();
  ASSIGN_OR_RETURN(const double number, Number(*value, name, 0.001, most));
  return absl::Seconds(number);
}

absl::StatusOr<FaultKind> Reader::ReadKind(const JsonValue& value) const {
  ASSIGN_OR_RETURN(const std::string name, Text(value, "kind"));
  const KindFacts* const facts = FindKind(name);
  if (facts != nullptr) return facts->kind;
  const absl::string_view refused = WhyRefused(name);
  if (!refused.empty())
    return Wrong(value.place, absl::StrCat(name, " can't be rehearsed here: ", refused));
  const std::vector<absl::string_view> names = KindNames();
  const absl::string_view near = text::Nearest(name, names, 3);
  return Wrong(
      value.place,
      absl::StrCat("'", name, "' is no kind of fault",
                   near.empty() ? "" : absl::StrCat("; did you mean ", near, "?"),
                   near.empty() ? ". There are " : " There are ", absl::StrJoin(names, ", ")));
}

absl::Status Reader::ReadRandom(const JsonValue& value, const Campaign& campaign,
                                Fault& result) const {
  if (value.kind != Kind::kList || value.elements.size() != 2)
    return Wrong(value.place, "\"random\" must be two numbers of seconds, as in [10, 60]");
  ASSIGN_OR_RETURN(const double from, Number(value.elements[0], "random", 0, kMostSeconds));
  ASSIGN_OR_RETURN(const double to, Number(value.elements[1], "random", 0, kMostSeconds));
  if (from > to) return Wrong(value.place, "\"random\" must have the earlier time first");
  const double part =
      static_cast<double>(Draw(campaign.seed, 2 * campaign.faults.size(), kParts)) / kParts;
  result.time = absl::Seconds(from + (to - from) * part);
  result.is_random = true;
  return absl::OkStatus();
}

absl::Status Reader::ReadTrigger(const JsonValue& fault, const Campaign& campaign, bool has_seed,
                                 Fault& result) const {
  const JsonValue* const at = fault.Find("at");
  constexpr absl::string_view kForms =
      "{\"step\": 20}, {\"seconds\": 30} or {\"random\": [10, 60]}";
  if (at == nullptr) return Wrong(fault.place, absl::StrCat("\"at\" is missing: when? ", kForms));
  if (at->kind != Kind::kObject || at->members.size() != 1)
    return Wrong(at->place, absl::StrCat("\"at\" must be ", kForms));
  RETURN_IF_ERROR(CheckNames(*at, {"step", "seconds", "random"}));
  const JsonValue& value = at->members[0].value;
  if (at->members[0].name == "step") {
    ASSIGN_OR_RETURN(result.step, Whole(value, "step", 1));
    return absl::OkStatus();
  }
  if (at->members[0].name == "seconds") {
    ASSIGN_OR_RETURN(const double seconds, Number(value, "seconds", 0, kMostSeconds));
    result.time = absl::Seconds(seconds);
    return absl::OkStatus();
  }
  if (!has_seed) {
    return Wrong(value.place,
                 "\"random\" needs a \"seed\" beside \"faults\", so that it can be repeated");
  }
  return ReadRandom(value, campaign, result);
}

absl::Status Reader::ReadTarget(const JsonValue& fault, const KindFacts& facts,
                                Fault& result) const {
  const JsonValue* const rank = fault.Find("rank");
  const JsonValue* const host = fault.Find("host");
  if (rank != nullptr && host != nullptr)
    return Wrong(host->place, "give \"rank\" or \"host\", not both");
  if (rank != nullptr) {
    ASSIGN_OR_RETURN(const uint64_t number, Whole(*rank, "rank", 0));
    if (number > (1 << 20)) return Wrong(rank->place, "no job has so many ranks");
    result.rank = static_cast<int>(number);
  }
  if (host != nullptr) {
    ASSIGN_OR_RETURN(result.host, Text(*host, "host"));
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadTimes(const JsonValue& fault, const KindFacts& facts,
                               Fault& result) const {
  ASSIGN_OR_RETURN(result.lasts, Time(fault, "seconds", 86400));
  ASSIGN_OR_RETURN(result.grace, Time(fault, "grace_seconds", 86400));
  ASSIGN_OR_RETURN(const absl::Duration limit, Time(fault, "limit_seconds", kMostSeconds));
  if (limit > absl::ZeroDuration()) result.limit = limit;
  if (const JsonValue* const delay = fault.Find("delay_ms")) {
    ASSIGN_OR_RETURN(const double number, Number(*delay, "delay_ms", 1, kMostDelayMs));
    result.delay = absl::Milliseconds(number);
  }
  if (fault.Find("seconds") != nullptr && result.kind == FaultKind::kStop &&
      result.lasts > kLongestPause) {
    return Wrong(fault.Find("seconds")->place,
                 "a worker that is stopped for longer than 8 s may be killed, after 10 s: leave "
                 "\"seconds\" out");
  }
  if (facts.lasts && result.lasts == absl::ZeroDuration())
    return Wrong(fault.place, absl::StrCat(facts.name, " needs \"seconds\": how long?"));
  if (facts.delays && result.delay == absl::ZeroDuration())
    return Wrong(fault.place, absl::StrCat(facts.name, " needs \"delay_ms\": how slow?"));
  return absl::OkStatus();
}

absl::StatusOr<Fault> Reader::ReadFault(const JsonValue& value, const Campaign& campaign,
                                        bool has_seed) const {
  if (value.kind != Kind::kObject)
    return Wrong(value.place, "a fault must be an object, as in {\"kind\": \"kill\", ...}");
  Fault fault;
  fault.place = At(value.place);
  const JsonValue* const kind = value.Find("kind");
  if (kind == nullptr) return Wrong(value.place, "\"kind\" is missing");
  ASSIGN_OR_RETURN(fault.kind, ReadKind(*kind));
  const KindFacts& facts = FactsOf(fault.kind);
  std::vector<absl::string_view> names = {"kind", "at", "limit_seconds"};
  if (fault.kind != FaultKind::kFullDisk) names.push_back("host");
  // Rank 0 writes the checkpoints.
  if (!facts.is_about_host && fault.kind != FaultKind::kFullDisk) names.push_back("rank");
  if (facts.lasts || fault.kind == FaultKind::kStop) names.push_back("seconds");
  if (facts.delays) names.push_back("delay_ms");
  if (fault.kind == FaultKind::kPreemption) names.push_back("grace_seconds");
  RETURN_IF_ERROR(CheckNames(value, names));
  RETURN_IF_ERROR(ReadTrigger(value, campaign, has_seed, fault));
  RETURN_IF_ERROR(ReadTarget(value, facts, fault));
  RETURN_IF_ERROR(ReadTimes(value, facts, fault));
  return fault;
}

absl::StatusOr<Campaign> Reader::Read(const JsonValue& value) const {
  if (value.kind != Kind::kObject)
    return Wrong(value.place, "a campaign must be an object, as in {\"faults\": [...]}");
  RETURN_IF_ERROR(CheckNames(value, {"seed", "faults"}));
  Campaign campaign;
  const JsonValue* const seed = value.Find("seed");
  if (seed != nullptr) {
    ASSIGN_OR_RETURN(campaign.seed, Whole(*seed, "seed", 0));
  }
  const JsonValue* const faults = value.Find("faults");
  if (faults == nullptr) return Wrong(value.place, "\"faults\" is missing: a list of faults");
  if (faults->kind != Kind::kList || faults->elements.empty())
    return Wrong(faults->place, "\"faults\" must be a list of at least one fault");
  if (faults->elements.size() > kMostFaults)
    return Wrong(faults->place, absl::StrCat("a campaign has at most ", kMostFaults, " faults"));
  for (const JsonValue& element : faults->elements) {
    ASSIGN_OR_RETURN(Fault fault, ReadFault(element, campaign, seed != nullptr));
    campaign.faults.push_back(std::move(fault));
  }
  return campaign;
}

}  // namespace

absl::StatusOr<Campaign> ParseCampaign(absl::string_view text, absl::string_view file) {
  const absl::StatusOr<JsonValue> value = text::ReadJson(text);
  if (!value.ok())
    return absl::InvalidArgumentError(absl::StrCat(file, ":", value.status().message()));
  return Reader(file).Read(*value);
}

absl::Status CheckCampaign(const Campaign& campaign, const JobFacts& job) {
  const auto wrong = [](const Fault& fault, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(fault.place, ": ", FactsOf(fault.kind).name, " ", what));
  };
  for (const Fault& fault : campaign.faults) {
    const KindFacts& facts = FactsOf(fault.kind);
    if (fault.rank.has_value() && *fault.rank >= job.max_workers) {
      return wrong(fault, absl::StrCat("of rank ", *fault.rank, " can't happen: the job has ",
                                       job.max_workers, " ranks at most"));
    }
    if (fault.kind == FaultKind::kWrongGradientValue &&
        job.on_corruption == settings::OnCorruption::kEnd)
      return wrong(fault, "would end the job, as --on-corruption end says; rehearse it with evict");
    if (job.hosts.empty()) continue;
    const bool is_known = fault.host.empty() || std::find(job.hosts.begin(), job.hosts.end(),
                                                          fault.host) != job.hosts.end();
    if (!is_known) {
      return wrong(fault, absl::StrCat("of host '", text::OnOneLine(fault.host),
                                       "' can't happen: the job's hosts are ",
                                       absl::StrJoin(job.hosts, ", ")));
    }
    if (facts.needs_hosts && job.hosts.size() < 2)
      return wrong(fault, "needs a job with two hosts or more");
  }
  return absl::OkStatus();
}

// SplitMix64, a counter-based generator: each index has its own number, whatever was drawn before.
uint64_t Draw(uint64_t seed, uint64_t index, uint64_t count) {
  uint64_t mixed = seed + (index + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return (mixed ^ (mixed >> 31)) % count;
}

}  // namespace hvd::rehearsal
