// The explanation of a job's state: what it waits for, in words.
#ifndef RENDEZVOUS_MEMBERSHIP_VIEWS_EXPLANATION_H_
#define RENDEZVOUS_MEMBERSHIP_VIEWS_EXPLANATION_H_

#include <string>

#include "rendezvous/membership/parts.h"

namespace hvd::rendezvous::membership::views {

// What the job waits for, or its verdict, in one line.
std::string Explain(const Parts& parts);

// What is missing before the start: "hosts b, c to attach (1 of 3 attached)".
std::string MissingText(const Parts& parts);

}  // namespace hvd::rendezvous::membership::views

#endif  // RENDEZVOUS_MEMBERSHIP_VIEWS_EXPLANATION_H_
