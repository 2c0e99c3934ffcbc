#include "options/elastic_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvd::options {
namespace {

constexpr int kMostWorkers = 1 << 20;
constexpr int kMostSlots = 1 << 16;
constexpr int kWeek = 7 * 86400;
constexpr int kHour = 3600;
constexpr char kTimeoutVariable[] = "HOROVOD_ELASTIC_TIMEOUT";

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<rendezvous::policy::Cooldown> ParseCooldown(const std::string& text) {
  const std::vector<std::string> bounds = absl::StrSplit(text, ' ');
  const std::string flag = "--blacklist-cooldown-range";
  // Both values in one quoted argument take the command's first word as the second value.
  if (bounds.size() != 2) {
    return Invalid(
        absl::StrCat(flag, ": '", text, "' is not two numbers, as 10 100 without quotes"));
  }
  ASSIGN_OR_RETURN(int64_t low, ParseInteger(flag, bounds[0], 1, kHour));
  ASSIGN_OR_RETURN(int64_t high, ParseInteger(flag, bounds[1], 1, kHour));
  if (low > high) {
    return Invalid(absl::StrCat(flag, ": MIN (", low, ") must not be more than MAX (", high, ")"));
  }
  return rendezvous::policy::Cooldown{absl::Seconds(low), absl::Seconds(high)};
}

}  // namespace

absl::StatusOr<rendezvous::policy::FailureBudget> ParseFailureBudget(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  // Without a '/' the time is empty, which ParseDuration refuses.
  rendezvous::policy::FailureBudget budget;
  if (!absl::SimpleAtoi(parts.first, &budget.failures) || budget.failures < 0 ||
      !absl::ParseDuration(parts.second, &budget.window) || budget.window <= absl::ZeroDuration()) {
    return Invalid(absl::StrCat("--max-failures: '", text,
                                "' is not a number of failures and a time, as 5/10m"));
  }
  return budget;
}

// Declares a flag with a whole number, which is passed to `store`.
template <typename Store>
void ElasticFlags::Whole(FlagTable& flags, const std::string& names, const std::string& help,
                         int64_t low, int64_t high, Store store) {
  const std::string name = names.substr(0, names.find(','));
  flags.Value(names, "N", help, [this, name, low, high, store](const std::string& text) {
    // Recorded apart from the value, since a flag may be given with its default.
    given_.push_back(name);
    ASSIGN_OR_RETURN(int64_t value, ParseInteger(name, text, low, high));
    store(static_cast<int>(value));
    return absl::OkStatus();
  });
}

void ElasticFlags::Time(FlagTable& flags, const std::string& name, const std::string& help,
                        double low, double high, absl::Duration* target) {
  flags.Value(name, "SECONDS", help, [this, name, low, high, target](const std::string& text) {
    given_.push_back(name);
    ASSIGN_OR_RETURN(*target, ParseSeconds(name, text, low, high));
    return absl::OkStatus();
  });
}

void ElasticFlags::Declare(FlagTable& flags) {
  flags.Group(absl::StrCat("Elastic (on with ", Switches(), ")"));
  DeclareSizes(flags);
  DeclareTimes(flags);
  if (with_discovery_) DeclareDiscovery(flags);
  DeclareFailures(flags);
}

void ElasticFlags::DeclareSizes(FlagTable& flags) {
  Whole(flags, "--min-np,--min-num-proc", "Minimum number of processes (-np)", 1, kMostWorkers,
        [this](int n) { options_.min_workers = n; });
  Whole(flags, "--max-np,--max-num-proc", "Maximum number of processes (all slots)", 1,
        kMostWorkers, [this](int n) { options_.max_workers = n; });
  Whole(flags, "--spares", "Spare processes beyond --max-np, ready to take over (0)", 0,
        kMostWorkers, [this](int n) { options_.spec.spares = n; });
}

void ElasticFlags::DeclareTimes(FlagTable& flags) {
  Time(flags, "--elastic-timeout", "Time to wait for --min-np processes after a loss (600)", 1,
       kWeek, &options_.spec.elastic_timeout);
  Time(flags, "--join-delay", "Time to wait for more newcomers after the first (0.2)", 0, kHour,
       &options_.spec.join_delay);
  Time(flags, "--grace", "Grace period for a host that leaves (30)", 0, kWeek,
       &options_.spec.drain_grace);
}

void ElasticFlags::DeclareDiscovery(FlagTable& flags) {
  flags.Value("--host-discovery-script", "PATH", "Script that prints the hosts: host or host:slots",
              [this](const std::string& text) {
                options_.script = text;
                return absl::OkStatus();
              });
  Whole(flags, "--slots-per-host", "Slots of a host that the script prints without :slots", 1,
        kMostSlots, [this](int n) { options_.slots_per_host = n; });
}

void ElasticFlags::DeclareFailures(FlagTable& flags) {
  Whole(flags, "--reset-limit", "Maximum number of new worlds (no limit)", 0, kMostWorkers,
        [this](int n) { options_.spec.reset_limit = n; });
  flags.Value("--max-failures", "N/TIME", "Tolerated failures within a time (20/10m)",
              [this](const std::string& text) {
                given_.push_back("--max-failures");
                ASSIGN_OR_RETURN(options_.spec.budget, ParseFailureBudget(text));
                return absl::OkStatus();
              });
  Whole(flags, "--max-failures-in-a-row", "Tolerated without a commit in between; 0: no limit (3)",
        0, kMostWorkers, [this](int n) { options_.spec.failures_without_progress = n; });
  flags.TwoValues("--blacklist-cooldown-range", "MIN MAX",
                  "Seconds that a slot is not used after failures",
                  [this](const std::string& text) {
                    given_.push_back("--blacklist-cooldown-range");
                    ASSIGN_OR_RETURN(options_.spec.cooldown, ParseCooldown(text));
                    return absl::OkStatus();
                  });
}

bool ElasticFlags::Has(const std::string& name) const {
  return std::find(given_.begin(), given_.end(), name) != given_.end();
}

// The flags that make a job elastic, for messages.
std::string ElasticFlags::Switches() const {
  return with_discovery_ ? "--min-np, --max-np or --host-discovery-script" : "--min-np or --max-np";
}

absl::StatusOr<std::optional<ElasticOptions>> ElasticFlags::Finish(
    int num_proc, bool lists_hosts, const Environment& environment) const {
  if (!Has("--min-np") && !Has("--max-np") && options_.script.empty()) {
    // A flag of elastic jobs alone is refused: the user expects that it changes something.
    if (given_.empty()) return std::nullopt;
    return Invalid(absl::StrCat(given_.front(), " is for elastic jobs; ", Switches(),
                                " makes this one elastic"));
  }
  if (!options_.script.empty() && lists_hosts) {
    return Invalid(
        "--host-discovery-script and -H or --hostfile exclude each other; give one of them");
  }
  if (options_.slots_per_host > 0 && options_.script.empty()) {
    return Invalid("--slots-per-host is for hosts that a --host-discovery-script prints");
  }
  RETURN_IF_ERROR(CheckSizes(num_proc));
  ElasticOptions options = options_;
  if (!Has("--min-np")) options.min_workers = num_proc;
  // Only in elastic jobs: the variable may be set for all jobs of a site.
  const auto timeout = environment.find(kTimeoutVariable);
  const bool is_set = timeout != environment.end() && !timeout->second.empty();
  if (!Has("--elastic-timeout") && is_set) {
    ASSIGN_OR_RETURN(options.spec.elastic_timeout,
                     ParseSeconds(kTimeoutVariable, timeout->second, 1, kWeek));
  }
  return options;
}

absl::Status ElasticFlags::CheckSizes(int num_proc) const {
  // Without a number yet, who finds it checks it.
  const bool is_known = num_proc > 0;
  if (is_known && options_.min_workers > num_proc) {
    return Invalid(absl::StrCat("--min-np (", options_.min_workers, ") must not be more than -np (",
                                num_proc, ")"));
  }
  if (is_known && options_.max_workers > 0 && options_.max_workers < num_proc) {
    return Invalid(absl::StrCat("--max-np (", options_.max_workers, ") must not be less than -np (",
                                num_proc, ")"));
  }
  if (options_.spec.spares > 0 && options_.max_workers == 0) {
    return Invalid("--spares needs --max-np: without a limit every slot is in use");
  }
  return absl::OkStatus();
}

}  // namespace hvd::options
