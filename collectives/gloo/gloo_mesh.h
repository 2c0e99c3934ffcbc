// TCP connections from this rank to every other one, made from one round of key exchange.
#ifndef COLLECTIVES_GLOO_GLOO_MESH_H_
#define COLLECTIVES_GLOO_GLOO_MESH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "collectives/key_exchange.h"
#include "collectives/types.h"
#include "gloo/transport/context.h"
#include "gloo/transport/tcp/device.h"

namespace hvd {

// Makes Gloo's event loop turn quickly for a while. Gloo waits for a turn of its loop whenever it
// takes a socket out of it, and an idle loop turns every 10 ms: a mesh of 32 ranks would need 0.3 s
// to connect and as long to go away. While active, the loop turns every 100 us. Not safe for
// concurrent use.
class LoopTicker : public gloo::transport::tcp::Handler {
 public:
  LoopTicker();
  ~LoopTicker() override;

  // REQUIRES: `device` is destroyed before this.
  void Attach(gloo::transport::tcp::Device& device);
  void SetActive(bool active);

 private:
  void handleEvents(int events) override;

  const int fd_;
};

// Connected, but nobody has proved anything yet. The connections close with it.
struct GlooMesh {
  ~GlooMesh() { ticker.SetActive(true); }

  LoopTicker ticker;
  std::shared_ptr<gloo::transport::Context> context;  // owns device and pairs
  std::vector<std::string> nonces;                    // by rank, from the same key exchange
};

// REQUIRES: group.size > 1.
//   InvalidArgument: group.address is not a numeric address of this machine.
//   Otherwise as Backend::Connect and KeyExchange::AllGather; names the ranks that are missing.
absl::StatusOr<std::unique_ptr<GlooMesh>> ConnectMesh(const GroupInfo& group, KeyExchange& keys,
                                                      absl::Time deadline,
                                                      const Cancellation* cancellation);

}  // namespace hvd

#endif  // COLLECTIVES_GLOO_GLOO_MESH_H_
