import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.TableView;
import org.apache.pulsar.client.api.schema.Field;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;

/**
 * What Apache's Java client has to look up over HTTP, where its service URL is `http://`: topics, partitions,
 * topics of a pattern and schemas. Prints one line for each thing that was found.
 *
 * Arguments: the URL, the beginning of all topics' names, and a token where one is needed.
 */
public class HttpLookups {
    public static class Example {
        public String name;
        public int number;
    }

    public static class Later {
        public String name;
        public int number;
        public String added;
    }

    static PulsarClient client;
    static String topic;

    public static void main(String[] arguments) throws Exception {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(arguments[0]).ioThreads(1).listenerThreads(1);
        if (arguments.length > 2) {
            builder.authentication(AuthenticationFactory.token(arguments[2]));
        }
        topic = arguments[1];
        try (PulsarClient made = builder.build()) {
            client = made;
            versionsOfOneSchema();
            bytesOfAForeignSchema();
            keysAndValues();
            partitionsAndPatterns();
            strangeNames();
            readersAndTables();
            topicsThatMayNotBe();
        }
        System.out.println("closed");
    }

    /** A reader's own schema, and none: messages of two versions, each decoded by the one it was written with. */
    static void versionsOfOneSchema() throws Exception {
        try (Producer<Example> first = client.newProducer(Schema.AVRO(Example.class)).topic(topic).create()) {
            Example example = new Example();
            example.name = "first";
            example.number = 1;
            first.send(example);
        }
        SchemaDefinition<Later> definition = SchemaDefinition.<Later>builder().withPojo(Later.class).build();
        try (Producer<Later> second = client.newProducer(Schema.AVRO(definition)).topic(topic).create()) {
            Later later = new Later();
            later.name = "later";
            later.number = 2;
            later.added = "new";
            second.send(later);
        }
        try (Consumer<Later> consumer = subscribed(Schema.AVRO(definition), topic)) {
            for (int count = 0; count < 2; count++) {
                Later found = consumer.receive(30, TimeUnit.SECONDS).getValue();
                System.out.println("typed " + found.name + " " + found.number + " " + found.added);
            }
        }
        try (Consumer<GenericRecord> consumer = subscribed(Schema.AUTO_CONSUME(), topic)) {
            for (int count = 0; count < 2; count++) {
                GenericRecord found = consumer.receive(30, TimeUnit.SECONDS).getValue();
                List<String> fields = new ArrayList<>();
                for (Field field : found.getFields()) {
                    fields.add(field.getName() + "=" + found.getField(field));
                }
                System.out.println("generic " + found.getSchemaType() + " " + fields);
            }
        }
    }

    /** Bytes are checked against the topic's schema, which the producer asks for. */
    static void bytesOfAForeignSchema() throws Exception {
        Later later = new Later();
        later.name = "bytes";
        later.number = 3;
        byte[] encoded = Schema.AVRO(Later.class).encode(later);
        try (Producer<byte[]> producer = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create()) {
            producer.send(encoded);
            try {
                producer.send(new byte[] {-1});
                System.out.println("bytes taken");
            } catch (Exception error) {
                System.out.println("bytes refused");
            }
        }
        try (Consumer<byte[]> consumer = subscribed(Schema.BYTES, topic)) {
            int size = 0;
            for (int count = 0; count < 3; count++) {
                size = consumer.receive(30, TimeUnit.SECONDS).getData().length;
            }
            System.out.println("bytes " + (size == encoded.length));
        }
    }

    static void keysAndValues() throws Exception {
        var schema = Schema.KeyValue(Schema.STRING, Schema.JSON(Example.class),
                org.apache.pulsar.common.schema.KeyValueEncodingType.SEPARATED);
        Example example = new Example();
        example.name = "paired";
        example.number = 4;
        try (var producer = client.newProducer(schema).topic(topic + "-pairs").create()) {
            producer.send(new org.apache.pulsar.common.schema.KeyValue<>("key", example));
        }
        try (Consumer<GenericRecord> consumer = subscribed(Schema.AUTO_CONSUME(), topic + "-pairs")) {
            var found = (org.apache.pulsar.common.schema.KeyValue<?, ?>)
                    consumer.receive(30, TimeUnit.SECONDS).getValue().getNativeObject();
            System.out.println("pair " + found.getKey() + " " + ((GenericRecord) found.getValue()).getField("name"));
        }
    }

    static void partitionsAndPatterns() throws Exception {
        String parts = topic + "-parts"; // made before
        System.out.println("partitions " + client.getPartitionsForTopic(parts).get().size());
        try (Consumer<byte[]> consumer = client.newConsumer().topicsPattern(Pattern.compile(parts + ".*"))
                .subscriptionName("pattern").subscribe();
             Producer<byte[]> producer = client.newProducer().topic(parts).create()) {
            for (int number = 0; number < 9; number++) {
                producer.send(new byte[] {(byte) ('0' + number)});
            }
            List<String> found = new ArrayList<>();
            for (int count = 0; count < 9; count++) {
                found.add(new String(consumer.receive(30, TimeUnit.SECONDS).getData()));
            }
            Collections.sort(found);
            System.out.println("pattern " + String.join("", found));
        }
    }

    static void strangeNames() throws Exception {
        for (String name : List.of(topic + "-a b%2F\u00fc+?", topic.replace("persistent:", "non-persistent:") + "-kept nowhere")) {
            try (Consumer<String> consumer = subscribed(Schema.STRING, name);
                 Producer<String> producer = client.newProducer(Schema.STRING).topic(name).create()) {
                producer.send("sent");
                Message<String> message = consumer.receive(30, TimeUnit.SECONDS);
                System.out.println("named " + message.getTopicName().equals(name) + " " + message.getValue());
            }
        }
    }

    static void readersAndTables() throws Exception {
        String table = topic + "-table";
        try (Producer<Example> producer = client.newProducer(Schema.JSON(Example.class)).topic(table).create()) {
            for (int number = 0; number < 5; number++) {
                Example example = new Example();
                example.name = "row";
                example.number = number;
                producer.newMessage().key("k" + number % 2).value(example).send();
            }
        }
        try (TableView<Example> view = client.newTableView(Schema.JSON(Example.class)).topic(table).create();
             Reader<Example> reader = client.newReader(Schema.JSON(Example.class)).topic(table)
                     .startMessageId(MessageId.earliest).create()) {
            System.out.println("table " + view.get("k0").number + " " + view.get("k1").number);
            int count = 0;
            while (reader.hasMessageAvailable()) {
                reader.readNext(30, TimeUnit.SECONDS);
                count++;
            }
            System.out.println("read " + count);
        }
    }

    static void topicsThatMayNotBe() throws Exception {
        try {
            client.newProducer().topic("persistent://public/nowhere/t").create();
        } catch (PulsarClientException error) {
            System.out.println("nowhere " + error.getClass().getSimpleName());
        }
    }

    static <T> Consumer<T> subscribed(Schema<T> schema, String name) throws Exception {
        return client.newConsumer(schema).topic(name).subscriptionName("s-" + schema.getClass().getSimpleName())
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }
}
