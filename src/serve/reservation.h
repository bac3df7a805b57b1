// Room in a service's queue for a job that is still being prepared.
#pragma once

#include <string>
#include <utility>

#include "serve/jobs/queue.h"

namespace braid::serve {

class Service;

// It gives its room back, unless a job has taken that.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { swap(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    Reservation(std::move(other)).swap(*this);
    return *this;
  }
  ~Reservation();

  bool has_room() const { return service_ != nullptr; }

 private:
  friend class Service;
  Reservation(Service& service, std::string client, const Room& room) noexcept
      : service_(&service), client_(std::move(client)), room_(room) {}

  // Under the service's lock: a job is about to take the room.
  void give_to(Queue& queue) noexcept;
  void swap(Reservation& other) noexcept;

  Service* service_ = nullptr;
  std::string client_;
  Room room_;
};

}  // namespace braid::serve
