// Turns a client's order for pictures into its job: counted first, then decoded aside, then queued.
#pragma once

#include "serve/api/enhanced_order.h"
#include "serve/body/brought_pictures.h"

namespace braid::serve {

// Whose turn an order takes: the user's that the client names, so that clients behind one address
// get separate turns, else the address's. No user can take an address's name.
std::string client_of(const HttpRequest& http, const std::string& user);

struct ClientOrder {
  Order order;  // its request has neither pictures nor defaults yet
  UndecodedPictures brought;
  std::function<void(Request&)> adjust = {};  // what remains to be done to decoded pictures
  bool is_enhanced = false;                   // its prompt is to be rewritten first
};

using AnswerTo = std::function<Answer(const std::shared_ptr<Job>&)>;

// `answer` says how the client hears of its job. Throws ApiError 429 if the queue has no room, or
// none for this client;
// what is wrong with the pictures is found later, by the answer's `rest`, and with an enhancer by
// its `elsewhere`: no job is made then.
Answer take_order(const ApiContext& context, ClientOrder requested, AnswerTo answer);

}  // namespace braid::serve
