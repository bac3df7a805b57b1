// What pages need from a device: two streams, events and memory. Kept narrow so that a device can
// be simulated and its use checked (`OrderChecker`).
#pragma once

#include <source_location>

#include "weights/paging/page_bytes.h"

namespace braid {

using Site = std::source_location;

enum class StreamName { kCompute, kCopy };

struct Event {
  int id;
};
struct Slot {
  int id;
};

class PageDevice {
 public:
  virtual ~PageDevice() = default;

  // Whether computation runs asynchronously to the host.
  virtual bool is_asynchronous() const = 0;

  // Only outside the loop. Freed memory may be reused at once.
  virtual Slot allocate(std::int64_t bytes, Site site = Site::current()) = 0;
  virtual void free(Slot slot, Site site = Site::current()) = 0;
  virtual Tensor memory(Slot slot) const = 0;  // kByte
  virtual Event make_event(Site site = Site::current()) = 0;

  // Operations queue in order on their stream. An event covers what its stream had been given when
  // it was last recorded; waiting for an event never recorded returns at once.
  virtual void record(Event event, StreamName stream, Site site = Site::current()) = 0;
  virtual void wait(StreamName stream, Event event, Site site = Site::current()) = 0;
  // On the compute stream, outside the loop, the host waits until the copy is done.
  virtual void copy(StreamName stream, Slot to, const PageBytes& from,
                    Site site = Site::current()) = 0;
  // Declares that the stream's work at this point reads the slot and expects these contents.
  virtual void use(StreamName stream, Slot slot, const PageBytes& contents,
                   Site site = Site::current()) = 0;

  // Makes the host wait for the event. Throws what a queued operation threw.
  virtual void synchronize(Event event, Site site = Site::current()) = 0;
};

}  // namespace braid
