import { expect, test } from "vitest";
import { effectOf, isEventType } from "@/lib/webhook/event-effects";

const both = ["holdings", "transactions"];

test.each([
  ["ACCOUNT_HOLDINGS_UPDATED", { kind: "account", workTypes: ["holdings"], change: "none" }],
  ["TRADE_DETECTION", { kind: "account", workTypes: ["holdings"], change: "none" }],
  ["TRADE_UPDATE", { kind: "account", workTypes: ["holdings"], change: "none" }],
  ["TRADES_PLACED", { kind: "account", workTypes: ["holdings"], change: "none" }],
  ["ACCOUNT_TRANSACTIONS_INITIAL_UPDATE", { kind: "account", workTypes: ["transactions"], change: "none" }],
  ["ACCOUNT_TRANSACTIONS_UPDATED", { kind: "account", workTypes: ["transactions"], change: "none" }],
  ["NEW_ACCOUNT_AVAILABLE", { kind: "account", workTypes: both, change: "account_available" }],
  ["CONNECTION_ADDED", { kind: "connection", workTypes: both, change: "connection_enabled" }],
  ["CONNECTION_FIXED", { kind: "connection", workTypes: both, change: "connection_enabled" }],
  ["CONNECTION_BROKEN", { kind: "state", change: "connection_disabled" }],
  ["CONNECTION_DELETED", { kind: "state", change: "connection_removed" }],
  ["CONNECTION_UPDATED", { kind: "state", change: "none" }],
  ["CONNECTION_ATTEMPTED", { kind: "state", change: "none" }],
  ["CONNECTION_FAILED", { kind: "state", change: "none" }],
  ["CONNECTION_OF_A_NEW_KIND", { kind: "state", change: "none" }],
  ["ACCOUNT_REMOVED", { kind: "state", change: "account_removed" }],
  ["USER_REGISTERED", { kind: "state", change: "none" }],
  ["USER_DELETED", { kind: "state", change: "user_deleted" }],
  ["USER_OF_A_NEW_KIND", { kind: "state", change: "none" }],
])("%s does %j", (eventType, effect) => {
  if (!isEventType(eventType)) throw new Error(`${eventType} is not known`);
  expect(effectOf({ eventType })).toMatchObject(effect);
});

test.each([
  "TEST_WEBHOOK",
  "ACCOUNT_OF_A_NEW_KIND",
  "toString",
  "__proto__",
  "",
  "CONNECTION_",
  "CONNECTION_a",
  `USER_${"A".repeat(65)}`,
])("%j is a type that nothing is known about", (eventType) => {
  expect(isEventType(eventType)).toBe(false);
});
