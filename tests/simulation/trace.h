// Text forms of the membership machine's effects, one line each.
#ifndef TESTS_SIMULATION_TRACE_H_
#define TESTS_SIMULATION_TRACE_H_

#include <optional>
#include <string>

#include "rendezvous/membership/events.h"
#include "rendezvous/membership/membership.h"

namespace hvd {

// "12 of world 3"; "12" for a commit of world 0.
std::string CommitText(uint64_t commit);

// The call that the effect answers, if it answers one.
std::optional<rendezvous::membership::CallId> AnsweredCall(
    const rendezvous::membership::Effect& effect);

// The call of a reply is left out; other effects have the host and worker that they are for.
std::string ToText(const rendezvous::membership::Effect& effect);

// Several lines.
std::string ToText(const rendezvous::membership::Membership::View& view);

}  // namespace hvd

#endif  // TESTS_SIMULATION_TRACE_H_
