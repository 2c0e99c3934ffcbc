#include "rendezvous/transport/connection.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/net/address.h"
#include "grpc/compression.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/support/channel_arguments.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/tcp_user_timeout.h"

namespace hvd::rendezvous::transport {
namespace {

// On one connection. A program that embeds the server may have the calls of many workers on one;
// a faulty member must not take the memory of the other jobs.
constexpr int kMostCallsAtOnce = 1000;
constexpr int kFirstReconnectMs = 100;
constexpr int kLongestReconnectMs = 1000;
constexpr int kLeastTimeBetweenLookupsMs = 1000;

// All addresses of a gRPC target are of one family, so IPv4 addresses are written as IPv4-mapped
// IPv6 addresses if there are both.
std::string TargetOfSeveral(const std::vector<std::string>& addresses) {
  const auto is_v6 = [](const std::string& address) { return absl::StartsWith(address, "["); };
  if (std::none_of(addresses.begin(), addresses.end(), is_v6)) {
    return absl::StrCat("ipv4:", absl::StrJoin(addresses, ","));
  }
  std::vector<std::string> mapped;
  for (const std::string& address : addresses) {
    const net::HostPort parts = net::SplitHostPort(address);
    mapped.push_back(is_v6(address) ? address
                                    : absl::StrCat("[::ffff:", parts.host, "]:", parts.port));
  }
  return absl::StrCat("ipv6:", absl::StrJoin(mapped, ","));
}

// The scheme of the target determines whether gRPC resolves a name.
std::string Target(const std::string& address) {
  if (absl::StrContains(address, ',')) return TargetOfSeveral(absl::StrSplit(address, ','));
  if (absl::StartsWith(address, "[")) return absl::StrCat("ipv6:", address);
  const bool numeric = !net::AddressBytes(net::SplitHostPort(address).host).empty();
  return absl::StrCat(numeric ? "ipv4:" : "dns:///", address);
}

int ToMilliseconds(absl::Duration time) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(time), 1, INT_MAX));
}

void SetReconnecting(grpc::ChannelArguments& arguments, absl::Duration attempt) {
  // gRPC uses the minimum back-off as the connect timeout. For a host that is unreachable, the TCP
  // user timeout ends the attempt long before that.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, ToMilliseconds(attempt));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kLeastTimeBetweenLookupsMs);
}

// Settings of both clients and servers.
void SetPatience(grpc::ChannelArguments& arguments, absl::Duration process_patience) {
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kHostSilenceMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ToMilliseconds(process_patience));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  EndWhenHostIsSilent(arguments, kHostSilenceMs);
}

class ServerPatience final : public grpc::ServerBuilderOption {
 public:
  explicit ServerPatience(absl::Duration process_patience) : patience_(process_patience) {}
  void UpdateArguments(grpc::ChannelArguments* arguments) override {
    SetPatience(*arguments, patience_);
  }
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

 private:
  const absl::Duration patience_;
};

void RefuseCompression(grpc::ServerBuilder& builder) {
  // gRPC unpacks a compressed request before it checks its size: 1 MiB becomes 1 GiB. No client of
  // ours compresses.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const security::PeerCredentials& credentials,
                                          const Patience& patience) {
  grpc::ChannelArguments arguments;
  SetPatience(arguments, patience.silence);
  arguments.SetSslTargetNameOverride(security::kDaemonTlsName);
  arguments.SetMaxReceiveMessageSize(kLargestResponseBytes);
  SetReconnecting(arguments, patience.attempt);
  return grpc::CreateCustomChannel(Target(address), security::MakeChannelCredentials(credentials),
                                   arguments);
}

std::shared_ptr<grpc::Channel> NewForeignChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  EndWhenHostIsSilent(arguments, kHostSilenceMs);
  arguments.SetMaxReceiveMessageSize(kLargestResponseBytes);
  SetReconnecting(arguments, absl::Milliseconds(kHostSilenceMs));
  return grpc::CreateCustomChannel(Target(address), credentials, arguments);
}

void ConfigureConnections(grpc::ServerBuilder& builder, absl::Duration process_patience) {
  builder.SetMaxReceiveMessageSize(kLargestRequestBytes);
  RefuseCompression(builder);
  // Of one connection. The memory of an answer is needed until its client has read it.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsAtOnce);
  builder.SetOption(std::make_unique<ServerPatience>(process_patience));
  // The time limit for the TLS handshake: an unauthenticated peer that sends nothing holds a
  // descriptor for this long.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             ToMilliseconds(process_patience));
  // By default a gRPC server closes connections of clients that ping as often as ours do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Without SO_REUSEPORT a second daemon on the same port fails to listen, instead of sharing the
  // connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace hvd::rendezvous::transport
