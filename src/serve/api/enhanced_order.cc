#include "serve/api/enhanced_order.h"

#include "base/error.h"
#include "net/enhancer/enhanced_request.h"

namespace braid::serve {
namespace {

ApiError error_of_enhancer(const braid::net::EnhancerFailure& failure) {
  using Kind = braid::net::EnhancerFailure::Kind;
  ApiError error = failure.kind() == Kind::kLate ? ApiError(504, failure.what(), "enhancer_timeout")
                                                 : ApiError(502, failure.what(), "enhancer_failed");
  // What takes minutes, or would be refused again, is not to be repeated.
  error.is_last_word = failure.kind() != Kind::kGone && failure.kind() != Kind::kBusy;
  return error;
}

net::EnhancedPrompt asked(const ApiContext& context, const Order& order,
                          const std::stop_token& stop) {
  try {
    auto enhanced =
        context.enhance(*order.backend, braid::net::plain_prompt(order.request, 0), stop);
    if (!stop.stop_requested()) return enhanced;
  } catch (const braid::net::EnhancerFailure& failure) {
    throw error_of_enhancer(failure);
  } catch (const Cancelled&) {
  } catch (const InputError& refusal) {
    throw ApiError(400, refusal.what(), "invalid_value");
  }
  context.service.require_not_stopped();
  ApiError cancelled(409, "the request was cancelled", "cancelled");
  cancelled.is_last_word = true;
  throw cancelled;
}

// An enhancer does not know the server's bounds.
void keep_within(const ApiContext& context, const ModelInfo& info, Request& request) {
  if (!request.width || !request.height) return;
  const auto size = size_within({*request.width, *request.height}, info, context.bounds);
  request.width = size.width;
  request.height = size.height;
}

}  // namespace

bool reads_enhance(Fields& fields, const ApiContext& context) {
  const bool is_asked = fields.flag("enhance").value_or(false);
  if (is_asked && !context.enhance)
    refuse("enhance", "this server has no prompt enhancer (--enhancer)");
  return is_asked;
}

Order enhanced_order(const ApiContext& context, Order order, const std::stop_token& stop) {
  // What cannot be drawn is refused before another machine works for minutes.
  (void)completed_request(order.request, *order.backend, context.bounds);
  const auto enhanced = asked(context, order, stop);
  const auto& info = order.backend->info;
  const bool has_size = order.request.width || order.request.height;
  order.original_prompt = order.request.prompts.front();
  order.request = braid::net::with_enhanced(std::move(order.request), 0, enhanced, info);
  if (!has_size) keep_within(context, info, order.request);
  try {
    auto completed = completed_request(std::move(order.request), *order.backend, context.bounds);
    order.request = std::move(completed.request);
    order.warnings.insert(order.warnings.end(), completed.warnings.begin(),
                          completed.warnings.end());
    if (enhanced.keep) enhanced.keep();
  } catch (const ApiError& refusal) {
    const auto why = text_of("its answer cannot be drawn: ", refusal.what());
    throw error_of_enhancer({braid::net::EnhancerFailure::Kind::kNonsense, why});
  }
  return order;
}

}  // namespace braid::serve
