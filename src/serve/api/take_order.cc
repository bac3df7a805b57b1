#include "serve/api/take_order.h"

#include <mutex>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/body/complaints.h"

namespace braid::serve {
namespace {

Order order_with_pictures(ClientOrder requested) {
  auto& order = requested.order;
  auto decoded = std::move(requested.brought).decoded();
  order.request.pictures = std::move(decoded.pictures);
  order.files = std::move(decoded.files);
  if (requested.adjust) requested.adjust(order.request);
  return std::move(order);
}

// What the file cannot hold would be found once the picture is drawn.
void check_form(const Order& order) {
  const auto& request = order.request;
  const auto& in = request.pictures;
  try {
    if (in.padding_crop && in.init) return check_sides(order.form, in.init->width, in.init->height);
    check_sides(order.form, request.width.value_or(1), request.height.value_or(1));
  } catch (const InputError& refusal) {
    refuse("size", refusal.what());
  }
}

Order completed_order(Order order, const RequestBounds& bounds) {
  auto completed = completed_request(std::move(order.request), *order.backend, bounds);
  order.request = std::move(completed.request);
  order.warnings.insert(order.warnings.end(), completed.warnings.begin(), completed.warnings.end());
  check_form(order);
  return order;
}

// Complaints name fields as the client sent them; LoRAs may also stand in a prompt.
template <class Work>
auto naming_what_was_sent(const std::set<std::string>& sent, Work work) {
  try {
    return work();
  } catch (ApiError& error) {
    if (!error.param.empty() && error.param != "lora")
      error.param = name_as_sent(error.param, sent);
    throw;
  }
}

// What waits for a thread, with its room in the queue. Its memory and the room are free at once if
// its client leaves before a thread takes it.
template <class What>
class Waiting {
 public:
  struct Held {
    What what;
    Reservation room;
  };
  explicit Waiting(Held held) : held_(std::move(held)) {}

  // Throws ApiError if the client left.
  Held take() {
    if (auto held = taken()) return *std::move(held);
    throw ApiError(409, "the request was cancelled", "cancelled");
  }
  void drop() { (void)taken(); }

 private:
  std::optional<Held> taken() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(held_, std::nullopt);
  }

  std::mutex mutex_;
  std::optional<Held> held_;
};

// The room is kept while the enhancer works.
Answer after_enhancing(const ApiContext& context, Order order, Reservation room, AnswerTo answer) {
  const auto stop = std::make_shared<std::stop_source>();
  const auto waiting =
      std::make_shared<Waiting<Order>>(Waiting<Order>::Held{std::move(order), std::move(room)});
  return {.elsewhere =
              [&context, stop, waiting, answer = std::move(answer)] {
                context.service.require_not_stopped();
                auto [held, room] = waiting->take();
                const auto sent = held.sent;
                auto enhanced = naming_what_was_sent(sent, [&context, &stop, &waits = held] {
                  return enhanced_order(context, std::move(waits), stop->get_token());
                });
                return answer(context.service.submit(std::move(enhanced), std::move(room)));
              },
          .when_gone =
              [stop, waiting] {
                stop->request_stop();
                waiting->drop();
              }};
}

}  // namespace

std::string client_of(const HttpRequest& http, const std::string& user) {
  return user.empty() ? http.client_address : std::string(kUserPrefix) + user;
}

Answer take_order(const ApiContext& context, ClientOrder requested, AnswerTo answer) {
  auto reserved = context.service.reserve(requested.order.client,
                                          {.pictures = requested.order.request.num_images,
                                           .input_bytes = requested.brought.num_bytes()});
  const bool has_pictures = !requested.brought.is_empty();
  const auto waiting = std::make_shared<Waiting<ClientOrder>>(
      Waiting<ClientOrder>::Held{std::move(requested), std::move(reserved)});
  auto rest = [&context, waiting, answer = std::move(answer)] {
    context.service.require_not_stopped();  // it must not keep clients waiting
    auto [held, room] = waiting->take();
    const bool is_enhanced = held.is_enhanced;
    const auto sent = held.order.sent;
    auto order = naming_what_was_sent(sent, [&context, is_enhanced, &waits = held] {
      auto whole = order_with_pictures(std::move(waits));
      check_form(whole);
      return is_enhanced ? std::move(whole) : completed_order(std::move(whole), context.bounds);
    });
    if (is_enhanced) return after_enhancing(context, std::move(order), std::move(room), answer);
    return answer(context.service.submit(std::move(order), std::move(room)));
  };
  if (!has_pictures) return rest();
  return {.rest = std::move(rest), .when_gone = [waiting] { waiting->drop(); }};
}

}  // namespace braid::serve
