#include "serve/api/take_order.h"

#include "base/error.h"
#include "serve/api_error.h"

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

using AnswerTo = std::function<Answer(const std::shared_ptr<Job>&)>;

// The room is kept while the enhancer works.
Answer after_enhancing(const ApiContext& context, Order order, std::shared_ptr<Room> room,
                       AnswerTo answer) {
  const auto stop = std::make_shared<std::stop_source>();
  const auto held = std::make_shared<Order>(std::move(order));
  return {.elsewhere =
              [&context, stop, held, room = std::move(room), answer = std::move(answer)] {
                auto enhanced = enhanced_order(context, std::move(*held), stop->get_token());
                return answer(context.service.submit(std::move(enhanced), room));
              },
          .when_gone = [stop] { stop->request_stop(); }};
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
    auto until_answered = std::move(room);
    context.service.require_ready();  // a server that stops must not keep clients waiting
    const bool is_enhanced = held->is_enhanced;
    auto order = order_with_pictures(std::move(*held));
    check_form(order);
    if (is_enhanced)
      return after_enhancing(context, std::move(order), std::move(until_answered),
                             std::move(answer));
    order = completed_order(std::move(order), context.bounds);
    return answer(context.service.submit(std::move(order), until_answered));
  };
  if (held->brought.is_empty()) return rest();
  return {.rest = std::move(rest)};
}

}  // namespace braid::serve
