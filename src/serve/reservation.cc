#include "serve/reservation.h"

#include "serve/service.h"

namespace braid::serve {

Reservation::~Reservation() {
  if (!service_) return;
  const std::scoped_lock lock(service_->mutex_);
  service_->queue_.release(client_, room_);
  service_->changed_.notify_all();
}

void Reservation::give_to(Queue& queue) noexcept {
  if (std::exchange(service_, nullptr)) queue.release(client_, room_);
}

void Reservation::swap(Reservation& other) noexcept {
  std::swap(service_, other.service_);
  std::swap(client_, other.client_);
  std::swap(room_, other.room_);
}

}  // namespace braid::serve
