// A backend whose collectives fail as a rehearsal orders. In any other job the runtime uses the
// backend itself, so a job without --inject pays nothing.
#ifndef REHEARSAL_WORKER_FAULTY_BACKEND_H_
#define REHEARSAL_WORKER_FAULTY_BACKEND_H_

#include <memory>

#include "collectives/backend.h"
#include "collectives/communicator.h"
#include "rehearsal/page/fault_page.h"

namespace hvd::rehearsal::worker {

// Connects by `backend`, and wraps each communicator. Before each collective it waits (kSlowLink)
// or fails (kCutLink); after an allreduce that sums floating-point numbers it changes one bit of
// this rank's result (kWrongValue). `page` must outlive the backend and its communicators.
std::unique_ptr<collectives::Backend> MakeFaultyBackend(
    std::unique_ptr<collectives::Backend> backend, page::FaultPage& page);

// Waits for the page's delay, if the page orders `order`.
void DelayIfOrdered(page::FaultPage& page, page::FaultPage::Order order);

// Changes the highest bit of the mantissa of the number at `data`, which makes it up to half as
// large again, or smaller by a third. REQUIRES: IsFloating(type).
void FlipBit(void* data, collectives::DataType type);

}  // namespace hvd::rehearsal::worker

#endif  // REHEARSAL_WORKER_FAULTY_BACKEND_H_
