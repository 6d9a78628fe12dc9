// Runs calls of Apache Pulsar's Go client for administration, which pulsarctl is made of.
//
// A line of the standard input is `GROUP METHOD [JSON list of arguments]`, where topics and namespaces are
// given by their names; the answer is a line of JSON, {"results": [...]} or {"error": "..."}. The line
// METHODS is answered with all there are: group, name and signature.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/apache/pulsar-client-go/pulsaradmin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

var errorType = reflect.TypeOf((*error)(nil)).Elem()
var contextType = reflect.TypeOf((*context.Context)(nil)).Elem()
var topicType = reflect.TypeOf(utils.TopicName{})
var namespaceType = reflect.TypeOf(utils.NameSpaceName{})

func groups(client admin.Client) map[string]any {
	found := map[string]any{
		"clusters": client.Clusters(), "tenants": client.Tenants(), "topics": client.Topics(),
		"subscriptions": client.Subscriptions(), "namespaces": client.Namespaces(), "schemas": client.Schemas(),
		"isolation": client.NsIsolationPolicy(), "brokers": client.Brokers(), "broker-stats": client.BrokerStats(),
		"quotas": client.ResourceQuotas(),
	}
	if provider, is := client.(admin.TopicPoliciesProvider); is {
		found["policies"] = provider.TopicPolicies(false)
		found["global-policies"] = provider.TopicPolicies(true)
	}
	return found
}

func value(text json.RawMessage, kind reflect.Type) (reflect.Value, error) {
	if kind == topicType || kind == namespaceType {
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return reflect.Value{}, err
		}
		if kind == topicType {
			topic, err := utils.GetTopicName(name)
			if err != nil {
				return reflect.Value{}, err
			}
			return reflect.ValueOf(*topic), nil
		}
		namespace, err := utils.GetNamespaceName(name)
		if err != nil {
			return reflect.Value{}, err
		}
		return reflect.ValueOf(*namespace), nil
	}
	made := reflect.New(kind)
	if err := json.Unmarshal(text, made.Interface()); err != nil {
		return reflect.Value{}, err
	}
	setUnnamed(made.Elem(), text)
	return made.Elem(), nil
}

// Sets the fields of a struct that are no part of its JSON, such as a tenant's name, by their names in Go.
func setUnnamed(made reflect.Value, text json.RawMessage) {
	var given map[string]json.RawMessage
	if made.Kind() != reflect.Struct || json.Unmarshal(text, &given) != nil {
		return
	}
	for place := 0; place < made.NumField(); place++ {
		field := made.Type().Field(place)
		if field.Tag.Get("json") == "-" && given[field.Name] != nil {
			json.Unmarshal(given[field.Name], made.Field(place).Addr().Interface())
		}
	}
}

func call(group any, name string, arguments []json.RawMessage) (results []any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	method := reflect.ValueOf(group).MethodByName(name)
	if !method.IsValid() {
		return nil, fmt.Errorf("no method %s", name)
	}
	kind := method.Type()
	var given []reflect.Value
	for place := 0; place < kind.NumIn(); place++ {
		if kind.In(place) == contextType {
			given = append(given, reflect.ValueOf(context.Background()))
			continue
		}
		if len(arguments) == 0 {
			return nil, fmt.Errorf("%s: no argument of type %s", name, kind.In(place))
		}
		made, err := value(arguments[0], kind.In(place))
		if err != nil {
			return nil, err
		}
		given, arguments = append(given, made), arguments[1:]
	}
	if len(arguments) > 0 {
		return nil, fmt.Errorf("%s: %d arguments too many", name, len(arguments))
	}
	results = []any{}
	for place, result := range method.Call(given) {
		if kind.Out(place) == errorType {
			if !result.IsNil() {
				err = result.Interface().(error)
			}
			continue
		}
		results = append(results, result.Interface())
	}
	return results, err
}

func main() {
	client, err := pulsaradmin.NewClient(&pulsaradmin.Config{WebServiceURL: os.Args[1]})
	if err != nil {
		panic(err)
	}
	known := groups(client)
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 3)
		if words[0] == "METHODS" {
			names := []string{}
			for name, group := range known {
				kind := reflect.TypeOf(group)
				for place := 0; place < kind.NumMethod(); place++ {
					method := kind.Method(place)
					names = append(names, fmt.Sprint(name, " ", method.Name, " ", method.Type))
				}
			}
			answers.Encode(names)
			continue
		}
		var arguments []json.RawMessage
		if len(words) > 2 {
			if err := json.Unmarshal([]byte(words[2]), &arguments); err != nil {
				answers.Encode(map[string]string{"error": "arguments: " + err.Error()})
				continue
			}
		}
		group, is := known[words[0]]
		if !is {
			answers.Encode(map[string]string{"error": "no group " + words[0]})
			continue
		}
		results, err := call(group, words[1], arguments)
		if err != nil {
			answers.Encode(map[string]string{"error": err.Error()})
		} else if err := answers.Encode(map[string]any{"results": results}); err != nil {
			answers.Encode(map[string]string{"error": "answer: " + err.Error()})
		}
	}
}
