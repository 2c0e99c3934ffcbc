#include "rendezvous/rendezvousd_options.h"

#include <set>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/version.h"

namespace hvd {
namespace {

constexpr int kMostSlots = 1 << 16;

constexpr char kDescription[] =
    "The rendezvous daemon of one job, for agents that something other than horovodrun starts.\n"
    "It prints the addresses it listens on, one a line, and ends with the job's exit code.";

constexpr char kFooter[] =
    "The file of --credentials-out is what an agent or worker needs to take part, and a secret: it "
    "is\n"
    "readable by its owner only, must not exist before, and is removed when the daemon ends. It is "
    "a\n"
    "message hvd.pb.Credentials (proto/agent.proto) in Protobuf's text format:\n"
    "  token, sent as metadata x-horovod-token with every call;\n"
    "  ca_certificate, certificate and private_key, PEM texts, for mutual TLS with a server whose\n"
    "  certificate carries the name horovod-rendezvous.\n"
    "SIGTERM or Ctrl-C ends the job with code 143 or 130; a second one ends it at once.";

// "h1:2,h2:2"
absl::Status ParseHosts(const std::string& text, std::vector<HostSlots>& hosts) {
  std::set<std::string> names;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const size_t colon = entry.rfind(':');
    HostSlots host;
    if (colon == absl::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(entry.substr(colon + 1), &host.slots) || host.slots < 1 ||
        host.slots > kMostSlots) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--hosts: \"", entry, "\" is not a host with a number of slots, as node1:4"));
    }
    host.host = std::string(entry.substr(0, colon));
    if (!names.insert(host.host).second) {
      return absl::InvalidArgumentError(absl::StrCat("--hosts: ", host.host, " comes twice"));
    }
    hosts.push_back(std::move(host));
  }
  return absl::OkStatus();
}

absl::Status CheckPlaces(const RendezvousdOptions& options) {
  if (options.np < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--np: ", options.np, " workers are no job; at least 1"));
  }
  int64_t slots = 0;
  for (const HostSlots& host : options.hosts) slots += host.slots;
  if (!options.hosts.empty() && options.np > slots) {
    return absl::InvalidArgumentError(
        absl::StrCat("--np: ", options.np, " workers, but --hosts has ", slots, " slots"));
  }
  return absl::OkStatus();
}

RendezvousdCommand Refuse(absl::string_view why) {
  return {std::nullopt,
          absl::StrCat("horovod-rendezvousd: ", absl::StrReplaceAll(why, {{"\n", " "}}), "\n"), 2};
}

}  // namespace

RendezvousdCommand ParseRendezvousdCommand(int argc, const char* const* argv) {
  RendezvousdOptions options;
  std::string hosts;
  CLI::App app(kDescription, "horovod-rendezvousd");
  app.footer(kFooter);
  app.set_version_flag("--version", kVersion);
  app.add_option("--listen", options.listen,
                 "a numeric address and port, as 10.0.0.1:0 or [::1]:0; port 0: a free one; may be "
                 "repeated")
      ->required()
      ->type_name("ADDR:PORT");
  app.add_option("--np", options.np, "how many workers the job has")->required()->type_name("N");
  const CLI::Option* given_hosts =
      app.add_option("--hosts", hosts,
                     "the hosts that take part and their slots, in the order of ranks; without "
                     "it, whoever comes")
          ->type_name("HOST:SLOTS,...");
  app.add_option("--credentials-out", options.credentials_out, "where to write the credentials")
      ->required()
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, absl::StrCat(version.what(), "\n"), 0};
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::ParseError& error) {
    return Refuse(error.what());
  }
  absl::Status status =
      given_hosts->count() > 0 ? ParseHosts(hosts, options.hosts) : absl::OkStatus();
  if (status.ok()) status = CheckPlaces(options);
  if (!status.ok()) return Refuse(status.message());
  return {std::move(options), "", 0};
}

}  // namespace hvd
