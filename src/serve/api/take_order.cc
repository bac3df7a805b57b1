#include "serve/api/take_order.h"

namespace braid::serve {
namespace {

Order completed_order(ClientOrder requested, const RequestBounds& bounds) {
  auto& [order, brought, adjust] = requested;
  auto decoded = std::move(brought).decoded();
  order.request.pictures = std::move(decoded.pictures);
  order.files = std::move(decoded.files);
  if (adjust) adjust(order.request);
  auto completed = completed_request(std::move(order.request), *order.backend, bounds);
  order.request = std::move(completed.request);
  order.warnings.insert(order.warnings.end(), completed.warnings.begin(), completed.warnings.end());
  return std::move(order);
}

}  // namespace

std::string client_of(const HttpRequest& http, const std::string& user) {
  return user.empty() ? http.client_address : "user " + user;
}

Answer take_order(const ApiContext& context, ClientOrder requested,
                  std::function<Answer(const std::shared_ptr<Job>&)> answer) {
  auto room = context.service.reserve({.pictures = requested.order.request.num_images,
                                       .input_bytes = requested.brought.num_bytes()});
  const auto held = std::make_shared<ClientOrder>(std::move(requested));
  auto rest = [&context, held, room = std::move(room), answer = std::move(answer)]() mutable {
    const auto until_answered = std::move(room);
    context.service.require_ready();  // a server that stops must not keep clients waiting
    auto order = completed_order(std::move(*held), context.bounds);
    return answer(context.service.submit(std::move(order), until_answered));
  };
  if (held->brought.is_empty()) return rest();
  return {.rest = std::move(rest)};
}

}  // namespace braid::serve
