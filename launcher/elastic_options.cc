#include "launcher/elastic_options.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

constexpr int kMostWorkers = 1 << 20;
constexpr int kMostSlots = 1 << 16;
constexpr int kWeek = 7 * 86400;
constexpr int kLongestCooldown = 3600;
constexpr char kTimeoutVariable[] = "HOROVOD_ELASTIC_TIMEOUT";

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<Cooldown> ParseCooldown(const std::string& text) {
  const std::vector<std::string> bounds = absl::StrSplit(text, ' ');
  const std::string flag = "--blacklist-cooldown-range";
  ASSIGN_OR_RETURN(int64_t low, ParseInteger(flag, bounds[0], 1, kLongestCooldown));
  ASSIGN_OR_RETURN(int64_t high, ParseInteger(flag, bounds[1], 1, kLongestCooldown));
  if (low > high) {
    return Invalid(absl::StrCat(flag, ": MIN (", low, ") must not be more than MAX (", high, ")"));
  }
  return Cooldown{absl::Seconds(low), absl::Seconds(high)};
}

}  // namespace

absl::StatusOr<FailureBudget> ParseFailureBudget(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  FailureBudget budget;
  if (!absl::SimpleAtoi(parts.first, &budget.failures) || budget.failures < 0 ||
      !absl::ParseDuration(parts.second, &budget.window) || budget.window <= absl::ZeroDuration()) {
    return Invalid(absl::StrCat("--max-failures: '", text,
                                "' is not a number of failures and a time, as 5/10m"));
  }
  return budget;
}

template <typename Store>
void ElasticFlags::Number(FlagTable& flags, const std::string& names, const std::string& help,
                          int64_t low, int64_t high, Store store, const std::string& kind) {
  const std::string name = names.substr(0, names.find(','));
  flags.Value(names, kind, help, [this, name, low, high, store](const std::string& text) {
    given_.push_back(name);
    ASSIGN_OR_RETURN(int64_t value, ParseInteger(name, text, low, high));
    store(value);
    return absl::OkStatus();
  });
}

void ElasticFlags::Declare(FlagTable& flags) {
  flags.Group("Elastic (on with --min-np or --host-discovery-script)");
  DeclareSizes(flags);
  DeclareHosts(flags);
  DeclareFailures(flags);
}

void ElasticFlags::DeclareSizes(FlagTable& flags) {
  Number(flags, "--min-np,--min-num-proc", "Go on with no fewer processes than these (-np)", 1,
         kMostWorkers, [this](int64_t n) {
           options_.min_workers = static_cast<int>(n);
           has_min_ = true;
         });
  Number(flags, "--max-np,--max-num-proc", "Never use more than these (all slots there are)", 1,
         kMostWorkers, [this](int64_t n) { options_.max_workers = static_cast<int>(n); });
  Number(flags, "--spares", "Beyond --max-np, keep so many ready to step in (0)", 0, kMostWorkers,
         [this](int64_t n) { options_.spec.spares = static_cast<int>(n); });
  Number(
      flags, "--elastic-timeout", "For --min-np processes to be there again (600)", 1, kWeek,
      [this](int64_t n) {
        options_.spec.elastic_timeout = absl::Seconds(n);
        has_elastic_timeout_ = true;
      },
      "SECONDS");
  flags.Value("--join-delay", "SECONDS", "Once one newcomer is ready, wait so for others (0.2)",
              [this](const std::string& text) {
                given_.push_back("--join-delay");
                double seconds = 0;
                if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0 && seconds <= 3600)) {
                  return Invalid(absl::StrCat("--join-delay: '", text,
                                              "' is not a number of seconds from 0 to 3600"));
                }
                options_.spec.join_delay = absl::Seconds(seconds);
                return absl::OkStatus();
              });
}

void ElasticFlags::DeclareHosts(FlagTable& flags) {
  flags.Value("--host-discovery-script", "PATH", "Prints the hosts there are: host or host:slots",
              [this](const std::string& text) {
                options_.script = text;
                return absl::OkStatus();
              });
  Number(flags, "--slots-per-host", "Slots of a host that the script prints without", 1, kMostSlots,
         [this](int64_t n) { options_.slots_per_host = static_cast<int>(n); });
  Number(
      flags, "--grace", "For a host that leaves to end its work (30)", 0, kWeek,
      [this](int64_t n) { options_.spec.drain_grace = absl::Seconds(n); }, "SECONDS");
}

void ElasticFlags::DeclareFailures(FlagTable& flags) {
  Number(flags, "--reset-limit", "End the job after so many new worlds (no limit)", 0, kMostWorkers,
         [this](int64_t n) { options_.spec.reset_limit = static_cast<int>(n); });
  flags.Value("--max-failures", "N/TIME", "Forgive so many failures within a time (20/10m)",
              [this](const std::string& text) {
                given_.push_back("--max-failures");
                ASSIGN_OR_RETURN(options_.spec.budget, ParseFailureBudget(text));
                return absl::OkStatus();
              });
  flags.TwoValues("--blacklist-cooldown-range", "MIN MAX",
                  "Seconds a host is left alone after failures", [this](const std::string& text) {
                    given_.push_back("--blacklist-cooldown-range");
                    ASSIGN_OR_RETURN(options_.spec.cooldown, ParseCooldown(text));
                    return absl::OkStatus();
                  });
}

absl::StatusOr<std::optional<ElasticOptions>> ElasticFlags::Finish(
    int num_proc, bool lists_hosts, const Environment& environment) const {
  if (!has_min_ && options_.script.empty()) {
    if (given_.empty()) return std::nullopt;
    return Invalid(absl::StrCat(given_.front(),
                                " is for elastic jobs; --min-np or --host-discovery-script makes "
                                "this one elastic"));
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
  if (!has_min_) options.min_workers = num_proc;
  const auto timeout = environment.find(kTimeoutVariable);
  if (!has_elastic_timeout_ && timeout != environment.end()) {
    ASSIGN_OR_RETURN(int64_t seconds, ParseInteger(kTimeoutVariable, timeout->second, 1, kWeek));
    options.spec.elastic_timeout = absl::Seconds(seconds);
  }
  return options;
}

absl::Status ElasticFlags::CheckSizes(int num_proc) const {
  if (has_min_ && options_.min_workers > num_proc) {
    return Invalid(absl::StrCat("--min-np (", options_.min_workers, ") must not be more than -np (",
                                num_proc, ")"));
  }
  if (options_.max_workers > 0 && options_.max_workers < num_proc) {
    return Invalid(absl::StrCat("--max-np (", options_.max_workers, ") must not be less than -np (",
                                num_proc, ")"));
  }
  if (options_.spec.spares > 0 && options_.max_workers == 0) {
    return Invalid("--spares needs --max-np: without a limit every slot is in use");
  }
  return absl::OkStatus();
}

}  // namespace hvd
