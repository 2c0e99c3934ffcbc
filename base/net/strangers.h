// The bound on strangers: connections whose peers have not proved yet that they belong to the job.
// Decides which one goes when there are too many.
#ifndef BASE_NET_STRANGERS_H_
#define BASE_NET_STRANGERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hvd::net {

// Strangers must not keep members out, whether they stay silent or begin a handshake, and members
// that are in the middle of a slow handshake must not lose their places to them. So:
// - Each stage of a handshake has its own places. Neither a crowd of silent connections nor one of
//   first messages takes the places of the other, or of peers that have shown a certificate.
// - If a stage has too many, the source address with the most of them loses its oldest one, by the
//   time at which that has reached the stage. A crowd from one address costs others nothing, and of
//   a crowd from everywhere the newest stay for as long as a handshake takes.
// - Without descriptors, silent ones go before those that have sent something. Peers with a
//   certificate never go for that.
//
// The owner closes the connection and calls Remove. It also bounds the time of each. Pure; not
// thread-safe.
class Strangers {
 public:
  // How far the peer has come. A peer that has proved that it belongs to the job is no stranger.
  enum class Stage { kSilent, kHeard, kCertified };
  using Id = uint64_t;

  // `most` of each stage.
  explicit Strangers(size_t most) : most_(most) {}

  // A new connection, which is silent. `source`: see PeerSource.
  Id Add(std::string source);
  // The peer has reached `stage`. No effect if it has been there, or further.
  void Reach(Id stranger, Stage stage);
  void Remove(Id stranger);

  // Who must go because there are too many of its stage; nullopt: nobody. It is not the newest one
  // there.
  std::optional<Id> Surplus() const;
  // Who must go because no descriptors are left; nullopt: nobody may.
  std::optional<Id> LeastLikelyMember() const;

 private:
  static constexpr size_t kStages = 3;
  struct Place {
    std::string source;
    Stage stage = Stage::kSilent;
    uint64_t turn = 0;
  };
  using ByTurn = std::map<uint64_t, Id>;
  // The strangers of one stage, by their source.
  struct Crowd {
    std::map<std::string, ByTurn> sources;
    size_t size = 0;
  };

  Crowd& CrowdOf(Stage stage) { return crowds_[static_cast<size_t>(stage)]; }
  void Enter(Id stranger, Place& place);
  void Leave(const Place& place);
  static std::optional<Id> OldestOfTheLargestSource(const Crowd& crowd);

  const size_t most_;
  uint64_t turns_ = 0;
  std::map<Id, Place> places_;
  std::array<Crowd, kStages> crowds_;
};

}  // namespace hvd::net

#endif  // BASE_NET_STRANGERS_H_
