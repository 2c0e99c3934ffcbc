#include "launcher/agent/join_options.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "launcher/spawn/agent_protocol.h"

namespace hvd {
namespace {

constexpr int64_t kMostSlots = 1 << 16;
constexpr int64_t kLongestSeconds = 7 * 86400;

constexpr char kDescription[] =
    "Runs a job's workers on this host. horovodrun starts it on each host by itself (--stdio). "
    "With\n"
    "--join it takes part in the job of a horovod-rendezvousd, without a launcher:\n"
    "  horovod-agent --join HOST:PORT --token-file FILE [options] -- COMMAND...";

constexpr char kFooter[] =
    "Workers' output goes to stdout and stderr, with the rank in front. The exit code is the "
    "job's.\n"
    "In an elastic job SIGTERM drains this host: its workers leave at the next commit, no step is\n"
    "lost, and the agent exits with 0. A second SIGTERM, or Ctrl-C, ends it at once.";

// What CLI11 stores before it is checked.
struct Raw {
  std::string daemon;
  std::string networks;
  int64_t slots = 1;
  int64_t grace = 30;
  int64_t start_timeout = 60;
};

absl::Status ParseDaemon(const std::string& text, JoinOptions& options) {
  options.daemon = SplitHostPort(text);
  int port = 0;
  if (options.daemon.host.empty() || !absl::SimpleAtoi(options.daemon.port, &port) || port < 1 ||
      port > 65535 || (absl::StrContains(options.daemon.host, ':') && text[0] != '[')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--join: \"", text, "\" is not a host and a port, as node1:4000 or [fd00::1]:4000"));
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", value, " is not from ", least, " to ", most));
}

absl::Status Check(const Raw& raw, JoinOptions& options) {
  RETURN_IF_ERROR(ParseDaemon(raw.daemon, options));
  RETURN_IF_ERROR(CheckRange("--slots", raw.slots, 1, kMostSlots));
  RETURN_IF_ERROR(CheckRange("--grace", raw.grace, 0, kLongestSeconds));
  RETURN_IF_ERROR(CheckRange("--start-timeout", raw.start_timeout, 1, kLongestSeconds));
  options.slots = static_cast<uint32_t>(raw.slots);
  options.grace = absl::Seconds(raw.grace);
  options.start_timeout = absl::Seconds(raw.start_timeout);
  if (!raw.networks.empty()) options.networks = absl::StrSplit(raw.networks, ',');
  if (options.command.empty() || options.command[0].empty()) {
    return absl::InvalidArgumentError("no command to run; it comes last, after --");
  }
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, Raw& raw, JoinOptions& options) {
  app.footer(kFooter);
  app.set_version_flag("--version", absl::StrCat(kAgentProgram, " ", kVersion));
  app.add_option("--join", raw.daemon, "where the job's horovod-rendezvousd listens")
      ->required()
      ->type_name("HOST:PORT");
  app.add_option("--token-file", options.token_file,
                 "the secret file that horovod-rendezvousd has written")
      ->required()
      ->type_name("FILE");
  app.add_option("--slots", raw.slots, "how many workers this host takes (1)")->type_name("N");
  app.add_option("--host", options.host,
                 "the name of this host in the job (SLURMD_NODENAME, else the machine's own)")
      ->type_name("NAME");
  app.add_option("--grace", raw.grace,
                 "how long a drain may take; 0: as long as the job allows (30)")
      ->type_name("SECONDS");
  app.add_option("--start-timeout", raw.start_timeout,
                 "how long to wait until the daemon can be reached (60)")
      ->type_name("SECONDS");
  app.add_option("--network-interfaces", raw.networks,
                 "only these interfaces or networks between workers: eth0,10.0.0.0/8")
      ->type_name("LIST");
}

JoinCommand Refuse(absl::string_view why) {
  return {std::nullopt,
          absl::StrCat(kAgentProgram, ": ", absl::StrReplaceAll(why, {{"\n", " "}}), "\n"), 2};
}

}  // namespace

JoinCommand ParseJoinCommand(int argc, const char* const* argv) {
  JoinOptions options;
  Raw raw;
  const char* const* const end = argv + argc;
  const char* const* const dashes = std::find(argv, end, absl::string_view("--"));
  if (dashes != end) options.command.assign(dashes + 1, end);
  CLI::App app(kDescription, kAgentProgram);
  AddOptions(app, raw, options);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, absl::StrCat(version.what(), "\n"), 0};
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::ExtrasError& error) {
    return Refuse(absl::StrCat(error.what(), "; the command to run comes after --"));
  } catch (const CLI::ParseError& error) {
    return Refuse(error.what());
  }
  if (const absl::Status status = Check(raw, options); !status.ok()) {
    return Refuse(status.message());
  }
  return {std::move(options), "", 0};
}

}  // namespace hvd
