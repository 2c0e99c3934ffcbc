// Effects of the membership machine as text, one line each.
#ifndef TESTS_SIMULATION_TRACE_H_
#define TESTS_SIMULATION_TRACE_H_

#include <optional>
#include <string>

#include "rendezvous/membership/events.h"
#include "rendezvous/membership/membership.h"

namespace hvd {

// The call that the effect answers, if it answers one.
std::optional<rendezvous::membership::CallId> AnsweredCall(
    const rendezvous::membership::Effect& effect);

// For replies without the call, for others with the host and worker they are for.
std::string ToText(const rendezvous::membership::Effect& effect);

// Several lines.
std::string ToText(const rendezvous::membership::Membership::View& view);

}  // namespace hvd

#endif  // TESTS_SIMULATION_TRACE_H_
